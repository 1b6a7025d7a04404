import { whyNoKubeBinaries } from '#libs/api-servers';

/** Why an API server is not available for tests; undefined if it exists or can be built. */
export function whyNoKube(env: NodeJS.ProcessEnv = process.env): string | undefined {
  if ((env['SLUICE_NO_KUBE'] ?? '') !== '') return 'SLUICE_NO_KUBE is set';
  return whyNoKubeBinaries();
}
