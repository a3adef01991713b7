export function TagsPage() {
  return null;
}
