/** Relays messages of terminals between gateways, over core NATS or within one process. */
import type { TerminalRelay } from '../../gateway/terminals/ports.ts'
import { subjects } from '../../protocol/subjects.ts'
import type {
  TerminalAnswer,
  TerminalRequest,
  TowardsPerson,
  TowardsWorker,
} from '../../protocol/workers/terminals.ts'
import type { Bus } from '../host/ports.ts'

/** Milliseconds to wait for the gateway of the worker. */
const OPEN_TIMEOUT_MS = 3000

/** Creates the relay on a bus. */
export const createTerminalRelay = (
  bus: Pick<Bus, 'publish' | 'request' | 'subscribe'>,
): TerminalRelay => ({
  serve: (environment_id, open) =>
    bus.subscribe(subjects.openTerminal(environment_id), (message) =>
      open(message as TerminalRequest),
    ),
  open: async (request) => {
    const subject = subjects.openTerminal(request.environment_id)
    const answer = await bus.request(subject, request, OPEN_TIMEOUT_MS)
    return typeof answer === 'object' ? (answer.answer as TerminalAnswer) : undefined
  },
  toWorker: (id, message) => bus.publish(subjects.terminalDown(id), message),
  toPerson: (id, message) => bus.publish(subjects.terminalUp(id), message),
  onWorker: (id, on) =>
    bus.subscribe(subjects.terminalDown(id), (message) => {
      on(message as TowardsWorker)
    }),
  onPerson: (id, on) =>
    bus.subscribe(subjects.terminalUp(id), (message) => {
      on(message as TowardsPerson)
    }),
})
