import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { sources } from './sources.js';
import { until } from '../until.js';
import type { KubeApi, KubeObject } from '#libs/api-servers';

/** Definitions of other projects, each unchanged. */
export const OTHER_DEFINITIONS = sources('definitions');
/** Those of Flux. */
export const FLUX_DEFINITIONS = sources('flux-definitions');

/** That of a Cluster of Cluster API 1.14.2. */
export const CLUSTER_API_DEFINITIONS = sources('cluster-api-definitions');

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

/**
 * Applies every definition of a folder, like `kubectl apply -f`. Resolves with their names when all of them are
 * established and in the API server's list of resources, which it updates a moment later.
 */
export async function establish(api: KubeApi, folder: string): Promise<readonly string[]> {
  const definitions = readdirSync(folder).map((file) => parse(readFileSync(join(folder, file), 'utf8')) as KubeObject);
  for (const definition of definitions) {
    const reply = await api.call(
      'PATCH',
      `${DEFINITIONS}/${definition.metadata.name}?fieldManager=kubectl&fieldValidation=Strict`,
      definition,
      'application/apply-patch+yaml',
    );
    if (reply.code >= 300)
      throw new Error(`${definition.metadata.name}: ${JSON.stringify(reply.body).slice(0, 2_000)}`);
  }
  for (const { metadata } of definitions)
    await until(async () => {
      const definition = await api.get(`${DEFINITIONS}/${metadata.name}`);
      return isEstablished(definition) && (await isListed(api, definition?.spec as unknown as DefinitionSpec));
    }, `${metadata.name} is established and listed`);
  return definitions.map(({ metadata }) => metadata.name);
}

interface DefinitionSpec {
  readonly group: string;
  readonly names: { readonly plural: string };
  readonly versions: readonly { readonly name: string }[];
}

async function isListed(api: KubeApi, { group, names, versions }: DefinitionSpec): Promise<boolean> {
  const { body } = await api.call('GET', `/apis/${group}/${versions[0]?.name}`);
  const { resources = [] } = body as { readonly resources?: readonly { readonly name: string }[] };
  return resources.some(({ name }) => name === names.plural);
}

function isEstablished(definition: KubeObject | undefined): boolean {
  const conditions = (definition?.status?.['conditions'] ?? []) as readonly {
    readonly type: string;
    readonly status: string;
    readonly message?: string;
  }[];
  const wrong = conditions.find(
    ({ type, status }) =>
      (type === 'NonStructuralSchema' && status === 'True') || (type === 'NamesAccepted' && status === 'False'),
  );
  if (wrong !== undefined) throw new Error(`${definition?.metadata.name}: ${wrong.type}: ${wrong.message}`);
  return conditions.some(({ type, status }) => type === 'Established' && status === 'True');
}
