import { say } from "../words/say";

/** The field of a CSV file, by whose text `onText` is called; by null if none is chosen any more. */
export function FileField({ onText }: { onText: (text: string | null) => void }) {
  const take = async (file: File | undefined) => onText(file ? await file.text() : null);
  return (
    <label>
      {say("File")}
      <input
        className="field"
        type="file"
        accept=".csv,text/csv"
        required
        onChange={(event) => void take(event.currentTarget.files?.[0])}
      />
    </label>
  );
}
