/** Asks what the address is about before the page is there: the answers are on their way while its code is. */
import { address } from "./api/address";
import { allCostsOf } from "./api/costs";
import { askEarly } from "./api/early";
import { API, HOME, readPlace } from "./url/link";
import { readView } from "./url/view";

const { tenant, page } = readPlace(location.pathname);
if (tenant) {
  if (page === HOME) askEarly(address(tenant, "/costs", allCostsOf(readView(location.search))));
  askEarly(address(tenant, ""));
} else askEarly(`${API}tenants`);
askEarly(`${API}me`);
