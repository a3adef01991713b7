import { useHere } from "../app/router";
import { GLOSSARY, type Term } from "../format/glossary";
import { extra } from "../url/view";
import { say } from "../words/say";

/** Beside a word: what it means. It leads to the glossary. */
export function Ask({ about }: { about: Term }) {
  const here = useHere();
  return (
    <a className="ask" href={here.to(extra(here.view, "help", about))}>
      ?<span className="sr">{say(" what “{word}” means", { word: GLOSSARY[about][0] })}</span>
    </a>
  );
}
