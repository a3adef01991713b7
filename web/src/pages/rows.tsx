export function RowsPage() {
  return null;
}
