import { createLogger } from '#libs/process';
import { runGuard } from '../shell/index.js';

/** The guard of an applier that a spec runs from its sources: node run-ts.cjs guard.ts 'ID FILE'. */
async function main(idAndFile: string): Promise<void> {
  const [id = ''] = idAndFile.split(' ', 1);
  process.stdout.write(`${await runGuard(id, idAndFile.slice(id.length + 1), createLogger('guard'))}\n`, () =>
    process.exit(0),
  );
}

void main(process.argv[3] ?? '');
