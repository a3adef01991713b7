/** Small things that this browser remembers; without storage it remembers nothing. */
export function remembered(name: string): string | null {
  try {
    return localStorage.getItem(`chargeback.${name}`);
  } catch {
    return null;
  }
}

export function remember(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(`chargeback.${name}`);
    else localStorage.setItem(`chargeback.${name}`, value);
  } catch {
    // Private windows may refuse.
  }
}
