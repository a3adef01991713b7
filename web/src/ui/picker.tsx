import { type ReactNode, useEffect, useId, useRef, useState } from "preact/compat";

export interface Choice {
  key: string;
  name: string;
  note?: ReactNode;
}

interface Props<C extends Choice> {
  label: string;
  placeholder?: string;
  choices: readonly C[];
  text: string;
  onText: (text: string) => void;
  onChoose: (choice: C) => void;
  empty: string;
}

/** A combobox whose list is always open: typing narrows, arrows walk, Enter chooses. */
export function Picker<C extends Choice>({ label, placeholder, choices, text, onText, onChoose, empty }: Props<C>) {
  const id = useId();
  const [walked, setWalked] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  const at = Math.min(walked, choices.length - 1);

  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      const next = Math.max(0, Math.min(choices.length - 1, at + step));
      setWalked(next);
      document.getElementById(`${id}-${next}`)?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter") {
      event.preventDefault();
      const choice = choices[at];
      if (choice) onChoose(choice);
    }
  };

  return (
    <div className="picker">
      <input
        ref={input}
        className="field"
        type="text"
        role="combobox"
        aria-label={label}
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={choices.length ? `${id}-${at}` : undefined}
        autoComplete="off"
        spellcheck={false}
        placeholder={placeholder}
        value={text}
        onChange={(event) => {
          setWalked(0);
          onText(event.currentTarget.value);
        }}
        onKeyDown={onKey}
      />
      {choices.length ? (
        <div role="listbox" id={`${id}-list`} aria-label={label}>
          {choices.map((choice, n) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are the input's, which keeps the focus
            // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the input, which names the active option
            <div
              key={choice.key}
              id={`${id}-${n}`}
              className="option"
              role="option"
              aria-selected={n === at}
              onPointerMove={() => setWalked(n)}
              onClick={() => onChoose(choice)}
            >
              <span className="cut">{choice.name}</span>
              {choice.note && <span className="end cut">{choice.note}</span>}
            </div>
          ))}
        </div>
      ) : (
        <p className="option quiet" id={`${id}-list`}>
          {empty}
        </p>
      )}
    </div>
  );
}
