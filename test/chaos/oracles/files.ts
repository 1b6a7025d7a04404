import type { Files } from '../../e2e/node-folders.js';
import type { Evidence, NodeEvidence, PublishedChange } from '../evidence.js';
import type { Oracle } from './oracle.js';

/**
 * I4: every node has exactly the files of the committed changes. A deferred node has the files of its last config. The
 * committed files are computed here, from what was published and the order of the commits.
 */
export const files: Oracle = {
  name: 'I4 files',
  judge(evidence) {
    const desired = committedFiles(evidence);
    return evidence.nodes.flatMap((found) => complaints(found, desired(found.node)));
  },
};

function complaints({ node, files: has, journal, status, inForce }: NodeEvidence, desired: Files): readonly string[] {
  if (journal === undefined || status === undefined)
    return [`${node} has no ${journal === undefined ? 'journal' : 'status'}`];
  if (journal.work !== undefined) return [`${node} is still at work on ${journal.work.lease}`];
  if (!journal.sound) return [`${node} is not sound`];
  if (inForce === undefined) return [`${node} has ${journal.inForce} in force, and nobody has that config`];
  if (!isSame(has, inForce))
    return [
      `${node} says ${journal.inForce.slice(0, 12)} is in force, which is ${JSON.stringify(inForce)}, and has ${JSON.stringify(has)}`,
    ];
  const isBehind = status.deferred !== '' || status.incompatible;
  return isBehind || isSame(has, desired)
    ? []
    : [`${node} should have ${JSON.stringify(desired)}, and has ${JSON.stringify(has)}`];
}

function committedFiles({ facts, published }: Evidence): (node: string) => Files {
  const bodies = new Map(published.map(({ change, body }) => [change, body]));
  const committed = new Map<
    string,
    { readonly path: string; readonly content: string; readonly role: string | undefined }
  >();
  for (const fact of facts) if (fact.type === 'config.committed') take(committed, bodies.get(fact.change) ?? {});
  return (node) =>
    Object.fromEntries(
      [...committed.values()]
        .filter(({ role }) => role === undefined || node.startsWith(`${role}-`))
        .map(({ path, content }) => [path, content.replaceAll('{{ node.name }}', node)]),
    );
}

function take(
  committed: Map<string, { path: string; content: string; role: string | undefined }>,
  body: PublishedChange['body'],
): void {
  for (const { kind, name } of body.delete ?? []) if (kind === 'File') committed.delete(name);
  for (const { kind, metadata, spec } of body.apply ?? []) {
    const { path, content, nodeSelector } = spec as {
      readonly path: string;
      readonly content: string;
      readonly nodeSelector?: { readonly matchLabels?: { readonly role?: string } };
    };
    if (kind === 'File') committed.set(metadata.name, { path, content, role: nodeSelector?.matchLabels?.role });
  }
}

function isSame(a: Files, b: Files): boolean {
  const text = (one: Files): string => JSON.stringify(Object.entries(one).sort(([x], [y]) => (x < y ? -1 : 1)));
  return text(a) === text(b);
}
