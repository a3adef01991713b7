import { render } from "preact";
import { App } from "./app/app";
import { language } from "./words/language";

document.documentElement.lang = language;
const root = document.getElementById("root");
if (root) render(<App />, root);
