/** The routes of the API rows: each request is admitted, and then executed by the verb of its row. */
import { routeOf } from '../../protocol/contract.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import { admit, isKnown } from '../admission.ts'
import { type Call, type Edge, operationOf, type Routed, rows } from '../call.ts'
import { runCommand } from '../command.ts'
import { receptionOf, transfer } from '../files/transfers.ts'
import type { Incoming, RouteFacts } from '../http/request.ts'
import type { Answer, Exchange } from '../http/respond.ts'
import { andThen, type MaybePromise } from '../maybe-promise.ts'
import type { Mcp } from '../mcp/mcp.ts'
import { runQuery } from '../query.ts'
import type { Handler, Service } from '../serve.ts'
import type { FollowedSessions } from '../sessions/transcript/followed.ts'
import {
  answerWithStream,
  isSessionStream,
  runSessionStream,
  wantsStream,
} from '../sessions/transcript/stream.ts'
import type { Multiplex } from '../streams/multiplex/multiplex.ts'
import { runStream, wantsPage } from '../streams/stream.ts'
import type { Router } from './router.ts'

/** What executes the calls of rows. */
export interface RowContext {
  readonly edge: Edge
  readonly service: Service
  readonly sessions: FollowedSessions
  readonly multiplex: Multiplex
  readonly mcp: Mcp
}

/** Adds a route for each API row. */
export function addRows(router: Router, context: RowContext): void {
  const { edge } = context
  for (const [name, row] of Object.entries(rows)) {
    const { method, path, slots } = routeOf(row)
    const routed = { name, row, slots }
    if (row.shape.stream === 'socket') router.addSocket(`/v1${path}`)
    else
      router.add(`/v1${path}`, {
        operation: name,
        purpose: purposeOf(routed),
        method,
        slots: slots.length,
        ...receptionOf(routed, edge.world.settings),
        handler: handlerOf(context, routed),
        isKnown: (incoming) => isKnown(edge, routed, incoming),
      })
  }
}

function purposeOf({ row: { verb, shape } }: Routed): RouteFacts['purpose'] {
  if (shape.mcp) return 'rpc'
  if (shape.upload) return 'upload'
  return verb === 'blob' ? 'other' : verb
}

/** Creates the handler of a row: admits each request, and executes its call. */
function handlerOf(context: RowContext, routed: Routed): Handler {
  const execute = executorOf(context, routed)
  const refused = ({ upload }: Incoming, why: Refusal) =>
    upload ? upload.discard().then(() => why) : why
  return (incoming, exchange) =>
    andThen(admit(context.edge, routed, incoming, exchange), (call) =>
      isRefusal(call) ? refused(incoming, call) : execute(call, exchange),
    )
}

type Execute = (call: Call, exchange: Exchange) => MaybePromise<Answer | Refusal | undefined>

/** Returns the function that executes the admitted calls of a row. */
function executorOf(context: RowContext, { row: { verb, shape } }: Routed): Execute {
  const { edge, service, sessions, mcp } = context
  // While the gateway drains, a new stream would end soon. A command that opens a stream is refused
  // before it is sent, so that the client can repeat it at another gateway.
  const refusesStream = (call: Call) => service.leaving && !wantsPage(call)
  if (shape.mcp)
    return (call, exchange) =>
      service.stopping || (verb === 'stream' && refusesStream(call))
        ? refuse('service_unavailable')
        : mcp.run(call, exchange)
  switch (verb) {
    case 'query':
      return (call) => runQuery(edge, call)
    case 'blob':
      return (call, exchange) => transfer(edge, call, exchange)
    case 'stream':
      return (call, exchange) =>
        refusesStream(call) ? refuse('service_unavailable') : openStream(context, call, exchange)
    case 'command':
      return (call, exchange) => {
        if (!wantsStream(call)) return runCommand(edge, call)
        if (service.leaving) return refuse('service_unavailable')
        return andThen(runCommand(edge, call), (answer) =>
          answerWithStream(edge, sessions, call, exchange, answer),
        )
      }
  }
}

/** Answers the call of a row with the verb `stream`: with a stream, or with one page. */
function openStream(
  { edge, sessions, multiplex }: RowContext,
  call: Call,
  exchange: Exchange,
): MaybePromise<Answer | Refusal | undefined> {
  const name = operationOf(call)
  if (name === 'stream.follow') return multiplex.run(call, exchange)
  return isSessionStream(name)
    ? runSessionStream(edge, sessions, call, exchange, name)
    : runStream(edge, edge.followers, call, exchange)
}
