export function DaysPage() {
  return null;
}
