export function UnownedPage() {
  return null;
}
