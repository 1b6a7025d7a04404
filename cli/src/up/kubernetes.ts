import {
  Kube,
  KUBE_SERVICES,
  KubeError,
  rightsOf,
  rightsWords,
  type DefinitionSeen,
  type WantedDefinition,
} from '#libs/kube';
import { customResourceDefinitions } from '#libs/manifests';
import { UsageError } from '../exit.js';

export interface KubernetesOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly say: (text: string) => void;
  /** Whether the definitions stay as they are. */
  readonly keepDefinitions: boolean;
  /** Of this Sluice. */
  readonly version: string;
  readonly signal: AbortSignal;
}

/** Something is refused that has to be allowed first. */
export class MissingRightsError extends Error {
  override readonly name = 'MissingRightsError';
}

const ANSWER_MS = 10_000;
/** What one machine should stand in for. */
const MOST_NODES = 500;
const AT_ONCE = 8;

/** Looks whether Kubernetes can be worked with, and puts the definitions in place; the names of its Nodes. Throws what a person has to know before anything is started. */
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
        `${kube.server} does not know who asks (${error.message}): the credentials of the kubeconfig have run out, or are another cluster's`,
      );
    throw error;
  }
}

/** All that is missing at once: who gives rights is often somebody else. */
async function requireRights(kube: Kube): Promise<void> {
  const wanted = KUBE_SERVICES.flatMap((service) =>
    rightsOf(service).map((right) => ({ service, right, allowed: false })),
  );
  await eachOf(wanted, async (one) => void (one.allowed = await kube.may(one.right)));
  const missing = KUBE_SERVICES.flatMap((service) => {
    const rights = wanted.filter((one) => one.service === service && !one.allowed).map(({ right }) => right);
    return rights.length === 0 ? [] : [`  ${service}: ${rightsWords(rights)}`];
  });
  if (missing.length === 0) return;
  throw new MissingRightsError(
    `at ${kube.server} these rights are missing:\n${missing.join('\n')}\nask for them (deploy/helm/sluice/templates/rights.yaml has them as roles), or name another kubeconfig with KUBECONFIG`,
  );
}

async function putDefinitions(kube: Kube, { keepDefinitions, say, version, signal }: KubernetesOptions): Promise<void> {
  const wanted = Object.values(customResourceDefinitions()) as unknown as readonly WantedDefinition[];
  const seen = new Map<string, DefinitionSeen>();
  try {
    await eachOf(wanted, async (one) => void seen.set(one.metadata.name, await kube.lookAtDefinition(one)));
    const { words, write } = whatToDo([...seen.values()], version, keepDefinitions);
    for (const line of words) say(line);
    await eachOf(
      wanted.filter(({ metadata }) => write.has(metadata.name)),
      (one) => kube.applyDefinition(one, version, signal),
    );
  } catch (error) {
    if (!(error instanceof KubeError) || !error.lacksRight) throw error;
    if (keepDefinitions)
      return say(
        `whether the definitions of the custom resources are those of ${version} is not to be seen: ${error.message}`,
      );
    throw new MissingRightsError(
      `the definitions of the custom resources cannot be put in place: ${error.message}\nask somebody who may to run kubectl apply --server-side -f deploy/crds, and start with --keep-crds`,
    );
  }
}

/** What to say of the definitions, and which to write. */
export function whatToDo(
  seen: readonly DefinitionSeen[],
  version: string,
  keep: boolean,
): { readonly words: readonly string[]; readonly write: ReadonlySet<string> } {
  const missing = seen.filter(({ state }) => state === 'missing').map(({ name }) => name);
  const different = seen.filter(({ state }) => state === 'different');
  const newer = different.filter((one) => isNewer(one.version, version));
  const released = different.filter((one) => !newer.includes(one) && one.release !== '');
  const older = different.filter((one) => !newer.includes(one) && !released.includes(one));
  const words: string[] = [];
  const versions = (all: readonly DefinitionSeen[]): string =>
    [...new Set(all.map((one) => one.version || 'an unnamed version'))].join(', ');
  const doing = keep
    ? 'left as they are (--keep-crds)'
    : 'written by server-side apply, as sluice; they stay when this ends';
  if (missing.length === 0 && different.length === 0)
    words.push(`the definitions of its ${seen.length} custom resources are there`);
  if (missing.length > 0)
    words.push(
      keep
        ? `${missing.length} definitions are missing, and objects of these kinds are waited for: ${missing.join(', ')}`
        : `${missing.length} definitions of custom resources are missing, and ${doing}: ${missing.join(', ')}`,
    );
  if (older.length > 0)
    words.push(`${older.length} definitions are of ${versions(older)} and differ from those of ${version}: ${doing}`);
  if (newer.length > 0)
    words.push(
      `${newer.length} definitions are newer than this Sluice: of ${versions(newer)}, and this is ${version}. They are left as they are; what they know more is refused here: upgrade Sluice`,
    );
  if (released.length > 0)
    words.push(
      `${released.length} definitions of ${versions(released)} differ from those of ${version}, and belong to the Helm release ${released[0]?.release}: they are left as they are; upgrade that`,
    );
  const releases = [...new Set(seen.map(({ release }) => release).filter((release) => release !== ''))];
  if (releases.length > 0)
    words.push(
      `Sluice is installed there by Helm (${releases.join(', ')}): where its services run, both would work on the same objects and Nodes; end one of them`,
    );
  return { words, write: new Set(keep ? [] : [...missing, ...older.map(({ name }) => name)]) };
}

/** By the numbers of both; what has no version is older than any. */
function isNewer(version: string, than: string): boolean {
  const [found, own] = [version, than].map((text) =>
    text
      .split(/[.+-]/)
      .slice(0, 3)
      .map((part) => Number.parseInt(part, 10) || 0),
  ) as [number[], number[]];
  const at = found.findIndex((part, i) => part !== own[i]);
  return at >= 0 && (found[at] as number) > (own[at] ?? 0);
}

/** A few at a time. */
async function eachOf<T>(all: readonly T[], act: (one: T) => Promise<void>): Promise<void> {
  const rest = [...all];
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let one = rest.shift(); one !== undefined; one = rest.shift()) await act(one);
    }),
  );
}
