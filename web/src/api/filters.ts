/** Written by `npm run types` from the API's document: the columns that each list of a tenant is filtered by, and
 * those that costs are grouped by. Tags and cost categories can be both. */
export const FILTERS: Readonly<Record<string, readonly string[]>> = {
  "/billing": [
    "product_type",
    "resource_id",
    "product_category",
    "environment_id",
    "cluster_id",
    "line_id",
    "ecosystem"
  ],
  "/costs": [
    "identity_id",
    "product_type",
    "resource_id",
    "cost_type",
    "product_category",
    "environment_id",
    "cluster_id",
    "allocation_method",
    "allocation_detail",
    "ecosystem"
  ],
  "/series": [
    "identity_id",
    "product_type",
    "resource_id",
    "cost_type",
    "product_category",
    "environment_id",
    "cluster_id",
    "allocation_method",
    "allocation_detail",
    "ecosystem"
  ],
  "/flow": [
    "identity_id",
    "product_type",
    "resource_id",
    "cost_type",
    "product_category",
    "environment_id",
    "cluster_id",
    "allocation_method",
    "allocation_detail",
    "ecosystem"
  ],
  "/graph": [
    "identity_id",
    "product_type",
    "resource_id",
    "cost_type",
    "product_category",
    "environment_id",
    "cluster_id",
    "allocation_method",
    "allocation_detail",
    "ecosystem"
  ],
  "/graph/diff": [
    "identity_id",
    "product_type",
    "resource_id",
    "cost_type",
    "product_category",
    "environment_id",
    "cluster_id",
    "allocation_method",
    "allocation_detail",
    "ecosystem"
  ],
  "/graph/timeline": [
    "identity_id",
    "product_type",
    "resource_id",
    "cost_type",
    "product_category",
    "environment_id",
    "cluster_id",
    "allocation_method",
    "allocation_detail",
    "ecosystem"
  ],
  "/chargebacks/diff": [
    "identity_id",
    "product_type",
    "resource_id",
    "cost_type",
    "product_category",
    "environment_id",
    "cluster_id",
    "allocation_method",
    "allocation_detail",
    "ecosystem",
    "line_id"
  ],
  "/forecast": [
    "identity_id",
    "product_type",
    "resource_id",
    "cost_type",
    "product_category",
    "environment_id",
    "cluster_id",
    "allocation_method",
    "allocation_detail",
    "ecosystem"
  ],
  "/chargebacks/changes": [
    "identity_id",
    "product_type",
    "resource_id",
    "cost_type",
    "product_category",
    "environment_id",
    "cluster_id",
    "allocation_method",
    "allocation_detail",
    "ecosystem"
  ],
  "/chargebacks/aggregate": [
    "identity_id",
    "product_type",
    "resource_id",
    "cost_type",
    "product_category",
    "environment_id",
    "cluster_id",
    "allocation_method",
    "allocation_detail",
    "ecosystem",
    "line_id"
  ],
  "/chargebacks": [
    "identity_id",
    "product_type",
    "resource_id",
    "cost_type",
    "product_category",
    "environment_id",
    "cluster_id",
    "allocation_method",
    "allocation_detail",
    "ecosystem",
    "line_id"
  ],
  "/chargebacks/allocation-issues": [
    "identity_id",
    "product_type",
    "resource_id",
    "cost_type",
    "product_category",
    "environment_id",
    "cluster_id",
    "allocation_method",
    "allocation_detail",
    "ecosystem",
    "line_id"
  ],
  "/topic-attributions": [
    "cluster_resource_id",
    "topic_name",
    "product_type",
    "attribution_method",
    "env_id",
    "product_category",
    "line_id"
  ],
  "/topic-attributions/aggregate": [
    "cluster_resource_id",
    "topic_name",
    "product_type",
    "attribution_method",
    "env_id",
    "product_category",
    "line_id"
  ],
  "/topics": [
    "identity_id",
    "product_type",
    "resource_id",
    "cost_type",
    "product_category",
    "environment_id",
    "cluster_id",
    "allocation_method",
    "allocation_detail",
    "ecosystem"
  ],
  "/unit-costs": [
    "identity_id",
    "product_type",
    "resource_id",
    "cost_type",
    "product_category",
    "environment_id",
    "cluster_id",
    "allocation_method",
    "allocation_detail",
    "ecosystem"
  ],
  "/cost-categories/{category_key}/coverage": [
    "identity_id",
    "product_type",
    "resource_id",
    "cost_type",
    "product_category",
    "environment_id",
    "cluster_id",
    "allocation_method",
    "allocation_detail",
    "ecosystem",
    "line_id"
  ]
};

export const GROUPS: readonly string[] = [
  "identity_id",
  "resource_id",
  "product_type",
  "product_category",
  "cost_type",
  "allocation_method",
  "environment_id",
  "allocation_detail",
  "ecosystem",
  "cluster_id"
];
