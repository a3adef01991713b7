import { type FormEvent, useId, useState } from "preact/compat";
import { CHOICES, choose, type Formats, formats } from "../format/formats";
import { Icon } from "../ui/icons";
import { Popover } from "../ui/popover";
import { LANGUAGES, language, usual } from "../words/language";
import { say } from "../words/say";
import { remember, remembered } from "./memory";

const THEMES = ["system", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];
const ICONS = { system: "system", light: "sun", dark: "moon" } as const;
const THEME_NAMES: Record<Theme, string> = { system: say("As the system"), light: say("Light"), dark: say("Dark") };
/** The name of the button, by the theme. */
const SPOKEN: Record<Theme, string> = {
  system: say("Appearance, theme: system"),
  light: say("Appearance, theme: light"),
  dark: say("Appearance, theme: dark"),
};

const FORMATS = ["numbers", "dates", "currency"] as const;
/** What each format is called, and those of its choices that are not written as they are remembered. */
const NAMES: Record<keyof Formats, string> = {
  numbers: say("Numbers"),
  dates: say("Days [how they are written]"),
  currency: say("Currency"),
};
const EXAMPLES: Record<string, string> = {
  "14 November 2026": say("14 November 2026"),
  before: say("before the amount: $12"),
  after: say("after the amount: 12 $"),
};

function current(): Theme {
  const found = remembered("theme");
  return THEMES.find((each) => each === found) ?? "system";
}

function apply(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  remember("theme", theme === "system" ? null : theme);
}

/** How the page looks: its theme, its language, and how it writes numbers, days and currencies. This browser remembers
 * all of them. */
export function AppearanceButton() {
  const [theme, setTheme] = useState(current);
  const change = (to: Theme) => {
    apply(to);
    setTheme(to);
  };
  return (
    <Popover
      name={say("Appearance")}
      icon={ICONS[theme]}
      bare="square"
      label={<span className="sr">{SPOKEN[theme]}</span>}
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
      <h3 id={id}>{say("Theme")}</h3>
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
    const wanted = String(data.get("language"));
    remember("language", wanted === usual() ? null : wanted);
    for (const name of FORMATS) choose(name, String(data.get(name)));
    location.reload();
  };
  return (
    <form onSubmit={submit}>
      <label>
        {say("Language")}
        <select className="field" name="language" defaultValue={language}>
          {Object.entries(LANGUAGES).map(([each, name]) => (
            <option key={each} value={each} lang={each}>
              {name}
            </option>
          ))}
        </select>
      </label>
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
        {say("Load the page with these")}
      </button>
    </form>
  );
}
