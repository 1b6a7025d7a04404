import type { KubeConfig } from '@kubernetes/client-node';
import { KubeConfigError } from './errors.js';
import type { Client } from './kubeconfig.js';

/**
 * Reads a kubeconfig that came from elsewhere, such as a Secret. It must contain everything itself: the person who
 * wrote it must neither run a command on this machine, nor read a file of it, nor send one to a server. Throws
 * KubeConfigError.
 */
export function parseKubeconfig({ KubeConfig }: Client, text: string): KubeConfig {
  const config = new KubeConfig();
  try {
    config.loadFromString(text);
  } catch (error) {
    throw new KubeConfigError(`the kubeconfig cannot be read: ${firstLine((error as Error).message)}`, {
      cause: error,
    });
  }
  const context = config.getCurrentContext() ?? '';
  const cluster = config.getCurrentCluster();
  const user = config.getCurrentUser();
  if (cluster === null)
    throw new KubeConfigError(`the kubeconfig names no cluster in its current context (${context || 'none'})`);
  if (!/^https?:\/\//.test(cluster.server) || !URL.canParse(cluster.server))
    throw new KubeConfigError(`the kubeconfig has no server that is a URL: ${JSON.stringify(cluster.server)}`);
  if (user === null) throw new KubeConfigError(`the kubeconfig names no user in its current context (${context})`);
  const refusal = refusalOf(cluster, user, text);
  if (refusal !== undefined) throw new KubeConfigError(`the kubeconfig ${refusal}`);
  return config;
}

type Cluster = NonNullable<ReturnType<KubeConfig['getCurrentCluster']>>;
type User = NonNullable<ReturnType<KubeConfig['getCurrentUser']>>;

const FLATTEN = 'put its content into the kubeconfig, as kubectl config view --raw --flatten does';
const TOKEN = 'use the token of a service account or a client certificate';

function refusalOf({ caFile }: Cluster, user: User, text: string): string | undefined {
  const command = (user.exec as { readonly command?: unknown } | undefined)?.command;
  if (user.exec !== undefined && user.exec !== null)
    return `gets its credentials from a command (${String(command)}), which Sluice does not run: ${TOKEN}`;
  if (user.authProvider !== undefined && user.authProvider !== null)
    return `gets its credentials from an auth-provider, which Sluice does not support: ${TOKEN}`;
  const files = { 'certificate-authority': caFile, 'client-certificate': user.certFile, 'client-key': user.keyFile };
  for (const [field, file] of Object.entries(files))
    if (file !== undefined && file !== '') return `names a file as ${field} (${file}): ${FLATTEN}`;
  if (/["'\s{,]tokenFile["']?\s*:/.test(text)) return `names a tokenFile: put the token itself into the kubeconfig`;
  return undefined;
}

const firstLine = (text: string): string => text.split('\n')[0] ?? '';
