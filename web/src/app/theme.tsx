import { useState } from "react";
import { Icon } from "../ui/icons";
import { remember, remembered } from "./memory";

const THEMES = ["system", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];
const ICONS = { system: "system", light: "sun", dark: "moon" } as const;

function current(): Theme {
  const found = remembered("theme");
  return THEMES.find((each) => each === found) ?? "system";
}

function apply(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  remember("theme", theme === "system" ? null : theme);
}

export function ThemeButton() {
  const [theme, setTheme] = useState(current);
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "system";
  const change = () => {
    apply(next);
    setTheme(next);
  };
  return (
    <button type="button" className="button square" onClick={change} title={`Theme: ${theme}; press for ${next}`}>
      <Icon name={ICONS[theme]} />
      <span className="sr">Theme: {theme}</span>
    </button>
  );
}
