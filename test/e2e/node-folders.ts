import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/** The files of a node by their path, as the node sees it. */
export type Files = Readonly<Record<string, string>>;

/** Where the files and the journals of a fleet's nodes are. */
export class NodeFolders {
  constructor(private readonly data: string) {}

  root(node: string): string {
    return join(this.data, 'nodes', node, 'root');
  }
  state(node: string): string {
    return join(this.data, 'nodes', node, 'state');
  }
  journal(node: string): string {
    return join(this.state(node), 'journal.json');
  }

  /** All that lies on a node now. Files that are being written under another name are not its files yet. */
  files(node: string): Files {
    const root = this.root(node);
    if (!existsSync(root)) return {};
    const paths = readdirSync(root, { recursive: true, encoding: 'utf8' })
      .map((path) => join(root, path))
      .filter(isFile)
      .sort();
    return Object.fromEntries(paths.map((path) => [`/${relative(root, path)}`, contentOf(path)]));
  }

  plant(node: string, files: Files): void {
    for (const [path, content] of Object.entries(files)) {
      const file = join(this.root(node), path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, content);
    }
  }
}

const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true;

/** It may be replaced between the listing and the reading. */
function contentOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
