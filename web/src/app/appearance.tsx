import { type FormEvent, useId, useState } from "react";
import { CHOICES, choose, type Formats, formats } from "../format/formats";
import { Icon } from "../ui/icons";
import { Popover } from "../ui/popover";
import { remember, remembered } from "./memory";

const THEMES = ["system", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];
const ICONS = { system: "system", light: "sun", dark: "moon" } as const;
const THEME_NAMES: Record<Theme, string> = { system: "As the system", light: "Light", dark: "Dark" };

const FORMATS = ["numbers", "dates", "currency"] as const;
/** What each format is called, and those of its choices that are no examples of themselves. */
const NAMES: Record<keyof Formats, string> = { numbers: "Numbers", dates: "Days", currency: "Currency" };
const EXAMPLES: Record<string, string> = { before: "before the amount: $12", after: "after the amount: 12 $" };

function current(): Theme {
  const found = remembered("theme");
  return THEMES.find((each) => each === found) ?? "system";
}

function apply(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  remember("theme", theme === "system" ? null : theme);
}

/** How the page looks: its theme, and how it writes numbers, days and currencies. This browser remembers both. */
export function AppearanceButton() {
  const [theme, setTheme] = useState(current);
  const change = (to: Theme) => {
    apply(to);
    setTheme(to);
  };
  return (
    <Popover
      name="Appearance"
      icon={ICONS[theme]}
      bare="square"
      label={<span className="sr">Appearance, theme: {theme}</span>}
    >
      {() => (
        <>
          <Themes theme={theme} onChange={change} />
          <hr />
          <FormatsForm />
        </>
      )}
    </Popover>
  );
}

function Themes({ theme, onChange }: { theme: Theme; onChange: (to: Theme) => void }) {
  const id = useId();
  return (
    <>
      <h3 id={id}>Theme</h3>
      <ul aria-labelledby={id}>
        {THEMES.map((each) => (
          <li key={each}>
            <button type="button" aria-current={each === theme ? "true" : undefined} onClick={() => onChange(each)}>
              <Icon name={ICONS[each]} />
              {THEME_NAMES[each]}
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

/** Loads the page again with what was chosen: where that would lose a draft, the browser asks before. */
function FormatsForm() {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    for (const name of FORMATS) choose(name, String(data.get(name)));
    location.reload();
  };
  return (
    <form onSubmit={submit}>
      {FORMATS.map((name) => (
        <label key={name}>
          {NAMES[name]}
          <select className="field" name={name} defaultValue={formats[name]}>
            {CHOICES[name].map((each) => (
              <option key={each} value={each}>
                {EXAMPLES[each] ?? each}
              </option>
            ))}
          </select>
        </label>
      ))}
      <button type="submit" className="button primary">
        Load the page with these
      </button>
    </form>
  );
}
