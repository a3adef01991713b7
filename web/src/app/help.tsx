import { useEffect, useRef } from "preact/compat";
import { useAccess } from "../api/me";
import { GLOSSARY, isTerm } from "../format/glossary";
import { Drawer } from "../ui/drawer";
import { API } from "../url/link";
import { extra } from "../url/view";
import { say } from "../words/say";
import { keysOf } from "./keys";
import { pagesFor } from "./pages";
import { goBack, useHere } from "./router";

/** What words mean, the keys, and the way to the API. The address names the word that was asked about. */
export function Help({ about }: { about: string }) {
  const here = useHere();
  const pages = pagesFor(useAccess(here.tenant ?? ""));
  const asked = useRef<HTMLDivElement>(null);
  useEffect(() => {
    asked.current?.scrollIntoView({ block: "center" });
  }, []);
  return (
    <Drawer title={say("Help")} onClose={() => goBack(here.to(extra(here.view, "help", null)))}>
      <section className="stack">
        <h3>{say("Words")}</h3>
        <dl className="glossary">
          {Object.entries(GLOSSARY).map(([term, [name, meaning]]) => (
            <div key={term} ref={term === about ? asked : null} className={term === about ? "lit" : undefined}>
              <dt>{name}</dt>
              <dd>{meaning}</dd>
            </div>
          ))}
        </dl>
        <h3 ref={isTerm(about) ? null : asked}>{say("Keys [of the keyboard]")}</h3>
        <dl className="facts-list">
          {keysOf(pages).map(([key, meaning]) => (
            <div key={key}>
              <dt>{meaning}</dt>
              <dd>
                <kbd>{key}</kbd>
              </dd>
            </div>
          ))}
        </dl>
        <p>
          {say("Everything on this page can be asked of the API, too: {documentation}.", {
            documentation: (
              <a
                className="more"
                href={new URL("../../docs", new URL(API, location.href)).pathname}
                target="_blank"
                rel="noopener"
              >
                {say("its documentation")}
              </a>
            ),
          })}
        </p>
      </section>
    </Drawer>
  );
}
