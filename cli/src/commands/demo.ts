import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SERVICES } from '#libs/contracts';
import { EXIT, type ExitCode } from '../output/exit.js';
import { tellDemo } from '../demo/story.js';
import { DEMO_NODES } from '../demo/scene.js';
import type { Session } from '../connection/session.js';
import { startUp } from '../up/run-up.js';

/** `sluice demo`: shows a good and a bad change on this machine, in less than a minute. */
export async function demo(session: Session, flags: { readonly keep?: boolean }): Promise<ExitCode> {
  const { io } = session;
  const data = mkdtempSync(join(tmpdir(), 'sluice-demo-'));
  const tell = session.isJson ? io.say : io.out;
  tell(
    `${io.colours.bold('Starting')} nats-server, ${SERVICES.length} services and ${DEMO_NODES.length} nodes in ${data} …`,
  );
  try {
    const running = await startUp({
      data,
      port: 0,
      nodes: DEMO_NODES,
      kubernetes: false,
      say: io.say,
      signal: io.interrupted,
    });
    try {
      if (running.missing.length > 0)
        throw new Error(
          `not ready: ${running.missing.join(', ')}; run sluice demo --keep and look at the logs in ${join(data, 'logs')}`,
        );
      const { connectFleet } = await import('#libs/client');
      const fleet = await connectFleet({ servers: [running.url], timeoutMs: 5_000 });
      const steps = await tellDemo({ fleet, data, tell, colours: io.colours, signal: io.interrupted }).finally(() =>
        fleet.close(),
      );
      const different = steps.filter(({ ok }) => !ok);
      if (session.isJson) io.out(JSON.stringify({ ok: different.length === 0, steps }));
      for (const { expected, actual } of different)
        io.say(`${io.colours.red('unexpected result:')} expected ${expected}, got ${actual}`);
      return different.length === 0 ? EXIT.done : EXIT.unexpected;
    } finally {
      await running.stop();
    }
  } finally {
    if (flags.keep === true) io.say(`The files and logs are in ${data}`);
    else rmSync(data, { recursive: true, force: true });
  }
}
