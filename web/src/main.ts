/** Asks what the address is about, then loads the page in the reader's language. */
import "./first";
import "./style/index.css";
import { loadWords } from "./words/catalogue";

const parsed = new Promise<unknown>((done) => {
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", done);
  else done(null);
});
Promise.allSettled([loadWords(), parsed]).then(() => import("./root"));
