// Preloaded into an installed applier. Before and after it replaces or removes a file, it reports that to the test, and
// continues when the test allows it.
const fs = require('node:fs/promises');
const { readFileSync, realpathSync } = require('node:fs');
const { connect } = require('node:net');
const { basename, dirname, join } = require('node:path');

const [host, port] = (process.env.RIG_PAUSES ?? '').split(' ');
const JOURNAL = '/var/lib/sluice/journal.json';

/** If there is no test to report to, nothing is held. */
function tell(point) {
  return new Promise((resolve) => {
    const socket = connect(Number(port), host);
    socket
      .on('connect', () => socket.write(`${point}\n`))
      .on('data', () => socket.destroy())
      .on('error', () => undefined)
      .on('close', resolve);
  });
}

/** The phase of the work in a journal. */
function phaseIn(path) {
  try {
    return /"phase":"([a-z-]+)"/.exec(readFileSync(path, 'utf8'))?.[1] ?? 'none';
  } catch {
    return 'none';
  }
}

function around(name, pointOf) {
  const real = fs[name];
  fs[name] = async (...args) => {
    const point = pointOf(...args);
    if (point === undefined) return real(...args);
    await tell(`before ${point}`);
    const result = await real(...args);
    await tell(`after ${point}`);
    return result;
  };
}

/** The applier refers to entries of a folder by the open folder. */
function named(path) {
  try {
    return join(realpathSync(dirname(String(path))), basename(String(path)));
  } catch {
    return String(path);
  }
}

const isOfNote = (path) => /^\/(etc|boot)\//.test(path);
if (port !== undefined) {
  around('rename', (from, to) => {
    const path = named(to);
    if (path === JOURNAL) return `journal ${phaseIn(from)}`;
    return isOfNote(path) ? `write ${path}` : undefined;
  });
  around('unlink', (path) =>
    isOfNote(named(path)) && !named(path).endsWith('.tmp') ? `remove ${named(path)}` : undefined,
  );
}
