import {
  Kube,
  KUBE_SERVICES,
  KubeError,
  rightsOf,
  rightsWords,
  type DefinitionState,
  type WantedDefinition,
} from '#libs/kube';
import { customResourceDefinitions } from '#libs/manifests';
import { pipelined } from '#libs/nats/lean';
import { isAtLeast } from '#libs/process';
import { UsageError } from '../output/exit.js';
import { count } from '../output/table.js';

export interface KubernetesOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly say: (text: string) => void;
  /** Whether the definitions stay as they are. */
  readonly keepDefinitions: boolean;
  /** The version of this Sluice. */
  readonly version: string;
  readonly signal: AbortSignal;
}

/** Kubernetes denies something that Sluice needs. */
class MissingRightsError extends Error {
  override readonly name = 'MissingRightsError';
}

const ANSWER_MS = 10_000;
/** The limit for one machine. */
const MOST_NODES = 500;
const AT_ONCE = 8;

/** Checks access to Kubernetes and installs the custom resource definitions; returns the names of its Nodes. */
export async function prepareKubernetes(options: KubernetesOptions): Promise<readonly string[]> {
  const kube = await Kube.open({ env: options.env, timeoutMs: ANSWER_MS });
  try {
    options.say(`Kubernetes ${await versionOf(kube)} at ${kube.server}`);
    await requireRights(kube);
    await putDefinitions(kube, options);
    return await kube.nodeNames(MOST_NODES);
  } finally {
    await kube.close();
  }
}

async function versionOf(kube: Kube): Promise<string> {
  try {
    return await kube.version();
  } catch (error) {
    if (error instanceof KubeError && error.code === 401)
      throw new UsageError(
        `${kube.server} rejected the credentials (${error.message}): they have expired or belong to another cluster; check the kubeconfig`,
      );
    throw error;
  }
}

/** Lists everything that is missing at once, because usually another person grants it. */
async function requireRights(kube: Kube): Promise<void> {
  const definitions = KUBE_SERVICES.flatMap((service) =>
    rightsOf(service).map((right) => ({ service, right, allowed: false })),
  );
  await pipelined(definitions, AT_ONCE, async (one) => void (one.allowed = await kube.may(one.right)));
  const missing = KUBE_SERVICES.flatMap((service) => {
    const rights = definitions.filter((one) => one.service === service && !one.allowed).map(({ right }) => right);
    return rights.length === 0 ? [] : [`  ${service}: ${rightsWords(rights)}`];
  });
  if (missing.length === 0) return;
  throw new MissingRightsError(
    `permissions are missing at ${kube.server}:\n${missing.join('\n')}\nAsk for them (deploy/helm/sluice/templates/rights.yaml has the roles), or use another kubeconfig with KUBECONFIG`,
  );
}

async function putDefinitions(kube: Kube, { keepDefinitions, say, version, signal }: KubernetesOptions): Promise<void> {
  const definitions = Object.values(customResourceDefinitions()) as unknown as readonly WantedDefinition[];
  const states = new Map<string, DefinitionState>();
  try {
    await pipelined(
      definitions,
      AT_ONCE,
      async (one) => void states.set(one.metadata.name, await kube.lookAtDefinition(one)),
    );
    const { words, write } = whatToDo([...states.values()], version, keepDefinitions);
    for (const line of words) say(line);
    await pipelined(
      definitions.filter(({ metadata }) => write.has(metadata.name)),
      AT_ONCE,
      (one) => kube.applyDefinition(one, version, signal),
    );
  } catch (error) {
    if (!(error instanceof KubeError) || !error.lacksRight) throw error;
    if (keepDefinitions)
      return say(`Cannot check whether the custom resource definitions match version ${version}: ${error.message}`);
    throw new MissingRightsError(
      `cannot install the custom resource definitions: ${error.message}\nAsk an administrator to run kubectl apply --server-side -f deploy/crds, then start with --keep-crds`,
    );
  }
}

/** Which definitions to write, and what to tell the user about the others. */
export function whatToDo(
  states: readonly DefinitionState[],
  version: string,
  keep: boolean,
): { readonly words: readonly string[]; readonly write: ReadonlySet<string> } {
  const missing = states.filter(({ state }) => state === 'missing').map(({ name }) => name);
  const different = states.filter(({ state }) => state === 'different');
  const newer = different.filter((one) => isNewer(one.version, version));
  const released = different.filter((one) => !newer.includes(one) && one.release !== '');
  const older = different.filter((one) => !newer.includes(one) && !released.includes(one));
  const words: string[] = [];
  const crds = (all: readonly unknown[]): string => count(all.length, 'CRD');
  const versions = (all: readonly DefinitionState[]): string =>
    [...new Set(all.map((one) => one.version || 'unknown'))].join(', ');
  if (missing.length === 0 && different.length === 0) words.push(`All ${crds(states)} are up to date`);
  if (missing.length > 0)
    words.push(
      keep
        ? `Waiting for ${crds(missing)}, not installed because of --keep-crds: ${missing.join(', ')}`
        : `Installing ${crds(missing)} with server-side apply (kept when sluice up ends): ${missing.join(', ')}`,
    );
  if (older.length > 0)
    words.push(
      keep
        ? `Keeping ${crds(older)} of version ${versions(older)} (--keep-crds); this is Sluice ${version}`
        : `Updating ${crds(older)} from version ${versions(older)} to ${version} with server-side apply`,
    );
  if (newer.length > 0)
    words.push(
      `Keeping ${crds(newer)} of the newer version ${versions(newer)}; this is Sluice ${version}, which rejects unknown fields. Upgrade Sluice`,
    );
  if (released.length > 0)
    words.push(
      `Keeping ${crds(released)} of version ${versions(released)} from the Helm release ${released[0]?.release}; this is Sluice ${version}. Upgrade the Helm release`,
    );
  const releases = [...new Set(states.map(({ release }) => release).filter((release) => release !== ''))];
  if (releases.length > 0)
    words.push(
      `Sluice is also installed in this cluster by Helm (${releases.join(', ')}): do not run both, because they would work on the same objects and Nodes`,
    );
  return { words, write: new Set(keep ? [] : [...missing, ...older.map(({ name }) => name)]) };
}

/** A definition without a version counts as older than any other. */
const isNewer = (version: string, than: string): boolean => !isAtLeast(than, version);
