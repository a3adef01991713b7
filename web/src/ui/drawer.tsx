import { type ReactNode, useEffect, useId, useRef } from "preact/compat";
import { say } from "../words/say";
import { Icon } from "./icons";
import { IsSaidAbove } from "./states";

interface Props {
  title: string;
  kind?: "drawer" | "finder";
  onClose: () => void;
  children: ReactNode;
}

/** A modal dialog: the platform keeps the focus inside and gives it back. */
export function Drawer({ title, kind = "drawer", onClose, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const opener = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
    };
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes a dialog by itself; the click is on its backdrop
    <dialog
      ref={dialog}
      className={kind}
      aria-labelledby={id}
      onClose={onClose}
      onClick={(event) => event.target === event.currentTarget && event.currentTarget.close()}
    >
      {kind === "finder" ? (
        <h2 id={id} className="sr">
          {title}
        </h2>
      ) : (
        <header>
          <h2 id={id}>{title}</h2>
          <button type="button" className="button square" onClick={() => dialog.current?.close()}>
            <Icon name="close" />
            <span className="sr">{say("Close [a dialog]")}</span>
          </button>
        </header>
      )}
      {/* What is said above the cards is behind the dialog. */}
      <IsSaidAbove value={false}>{children}</IsSaidAbove>
    </dialog>
  );
}
