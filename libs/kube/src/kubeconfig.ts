import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { KubeConfig } from '@kubernetes/client-node';
import { KubeConfigError } from './errors.js';

/** The client library. Loading it takes half a second and 70 MB, so it is loaded only when it is needed. */
export type Client = typeof import('@kubernetes/client-node');
export const loadClient = (): Promise<Client> => import('@kubernetes/client-node');

/**
 * Reads a named file, KUBECONFIG, the pod's service account, or ~/.kube/config. Throws KubeConfigError if there is
 * none, where the client library would fall back to http://localhost:8080.
 */
export function readKubeconfig(
  { KubeConfig }: Client,
  file: string | undefined,
  env: NodeJS.ProcessEnv,
  context?: string,
): KubeConfig {
  const config = new KubeConfig();
  const paths = file ?? env['KUBECONFIG'] ?? '';
  const own = join(env['HOME'] ?? homedir(), '.kube', 'config');
  const where =
    file ??
    (paths !== ''
      ? `KUBECONFIG=${paths}`
      : env['KUBERNETES_SERVICE_HOST'] !== undefined
        ? 'the service account of this pod'
        : own);
  try {
    if (paths !== '') readFiles(config, paths, file === undefined ? 'KUBECONFIG' : 'the path of the kubeconfig');
    else if (env['KUBERNETES_SERVICE_HOST'] !== undefined) config.loadFromCluster();
    else if (existsSync(own)) config.loadFromFile(own);
    else
      throw new KubeConfigError(
        `found no kubeconfig: set KUBECONFIG, create ${own}, or run in a pod with a service account`,
      );
  } catch (error) {
    if (error instanceof KubeConfigError) throw error;
    throw new KubeConfigError(`${where} cannot be used: ${(error as Error).message}`, { cause: error });
  }
  if (context !== undefined) useContext(config, context, where);
  if (config.getCurrentCluster() === null)
    throw new KubeConfigError(
      `${where} names no cluster in its current context (${config.getCurrentContext() || 'none'})`,
    );
  return config;
}

function useContext(config: KubeConfig, context: string, where: string): void {
  if (config.getContextObject(context) === null) {
    const names = config.getContexts().map(({ name }) => name);
    throw new KubeConfigError(`${where} has no context ${context}: it has ${names.join(', ') || 'none'}`);
  }
  config.setCurrentContext(context);
}

function readFiles(config: KubeConfig, paths: string, by: string): void {
  const files = paths.split(delimiter).filter((file) => file !== '');
  const missing = files.filter((file) => !existsSync(file));
  if (missing.length > 0)
    throw new KubeConfigError(
      `${by} names ${missing.join(', ')}, which ${missing.length === 1 ? 'does' : 'do'} not exist`,
    );
  config.loadFromFile(files[0] as string);
  for (const file of files.slice(1)) {
    const more = new (config.constructor as new () => KubeConfig)();
    more.loadFromFile(file);
    config.mergeConfig(more, true);
  }
}
