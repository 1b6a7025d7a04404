import { FunctionStandIn } from '../../../cli/src/demo/functions/stand-in.js';
import type { StandInFigures, ToStandIns } from './protocol.js';

/** Many stand-ins for replicas of a network function, in one process. */
const standIns: FunctionStandIn[] = [];

process.on('message', (message: ToStandIns) => void answer(message));

async function answer(message: ToStandIns): Promise<void> {
  if (message.do === 'start') for (let i = 0; i < message.count; i += 1) standIns.push(await FunctionStandIn.start());
  const figures: StandInFigures = {
    origins: standIns.map(({ baseUrl }) => new URL(baseUrl).origin),
    calls: standIns.reduce((all, { calls }) => all + calls.length, 0),
    logins: standIns.reduce((all, { logins }) => all + logins, 0),
    first: [...(standIns[0]?.calls ?? [])],
    rules: standIns[0]?.config.list('mwan3/v1/rules') ?? [],
  };
  for (const standIn of standIns) {
    standIn.calls.length = 0;
    standIn.services.length = 0;
    standIn.logins = 0;
  }
  process.send?.(figures);
}
