import { present } from "./answer";
import { useAccess } from "./me";
import { useTenant } from "./questions";

/** Whether the reader may say what is known of entities: tags, snoozes, what was planned. */
export function useCanTag(tenant: string): boolean {
  const { may } = useAccess(tenant);
  return (present(useTenant(tenant))?.features.can_tag ?? false) && may("tag");
}
