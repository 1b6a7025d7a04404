import type { StandInFigures, ToStandIns } from './protocol.js';
import { StandInServers } from './stand-in-server.js';

/** Many stand-ins for the API servers of clusters, in one process. */
let servers: StandInServers | undefined;

process.on('message', (message: ToStandIns) => void answer(message));

async function answer(message: ToStandIns): Promise<void> {
  if (message.do === 'start') servers = await StandInServers.start(message.count, message);
  if (servers === undefined) throw new Error('start comes first');
  const { origins, counts } = servers;
  const [first = ''] = origins;
  const figures: StandInFigures = {
    origins,
    counts: Object.fromEntries(counts),
    opened: servers.connections,
    connections: servers.openConnections,
    watches: servers.openWatches,
    first: servers.callsOf(first),
  };
  counts.clear();
  servers.connections = 0;
  servers.record(first);
  process.send?.(figures);
}
