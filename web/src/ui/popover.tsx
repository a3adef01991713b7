import { type ReactNode, useId, useRef, useState } from "preact/compat";
import { Icon, type IconName } from "./icons";

interface Props {
  label: ReactNode;
  icon?: IconName;
  /** Named by the keyboard shortcut that presses it. */
  shortcut?: string;
  plain?: boolean;
  /** Without a chevron; a button of an icon alone is square. */
  bare?: boolean | "square";
  name: string;
  /** Rendered only while it is open; `close` gives the focus back to the button. */
  children: (close: () => void) => ReactNode;
}

/** A button that opens a native popover below it. */
export function Popover({ label, icon, shortcut, plain = false, bare = false, name, children }: Props) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const pop = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState(false);

  const place = () => {
    const [at, box] = [button.current?.getBoundingClientRect(), pop.current];
    if (!at || !box) return;
    const left = Math.max(8, Math.min(at.left, document.documentElement.clientWidth - box.offsetWidth - 8));
    box.style.left = `${left}px`;
    box.style.top = `${Math.max(8, Math.min(at.bottom + 6, innerHeight - box.offsetHeight - 8))}px`;
    box.querySelector<HTMLElement>("input, a, button, [tabindex]")?.focus();
  };

  return (
    <>
      <button
        ref={button}
        type="button"
        className={`button ${plain ? "plain" : ""} ${bare === "square" ? "square" : ""}`}
        popoverTarget={id}
        data-key={shortcut}
        aria-haspopup="dialog"
        aria-expanded={open}
      >
        {icon && <Icon name={icon} />}
        {label}
        {!bare && <Icon name="chevron" className="chevron" />}
      </button>
      <div
        ref={pop}
        id={id}
        popover="auto"
        className="pop menu"
        role="dialog"
        aria-label={name}
        onToggle={(event) => {
          const opens = event.newState === "open";
          setOpen(opens);
          if (opens) requestAnimationFrame(place);
          else if (document.activeElement === document.body || pop.current?.contains(document.activeElement))
            button.current?.focus();
        }}
      >
        {open && children(() => pop.current?.hidePopover())}
      </div>
    </>
  );
}
