import type { Fragment } from '#libs/contracts';

export const API_VERSION = 'sluice.dev/v1alpha1';

/** The manifest of a fragment, as anybody would write it. */
export const manifestOf = ({
  kind,
  name,
  labels,
  spec,
}: Pick<Fragment, 'kind' | 'name' | 'labels'> & { readonly spec?: unknown }): object => ({
  apiVersion: API_VERSION,
  kind,
  metadata: { name, ...(Object.keys(labels).length === 0 ? {} : { labels }) },
  spec,
});
