import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/** The files of a node by their path, as the node sees it. */
export type Files = Readonly<Record<string, string>>;

/** The files and journals of the nodes of a fleet. */
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

  /** All files on a node now. Temporary files of unfinished writes are left out. */
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

/** The file may be replaced between listing and reading it. */
function contentOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
