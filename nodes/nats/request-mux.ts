/**
 * Sends messages and requests over one connection. All answers arrive at one subscription and are
 * matched by a number, and one timer serves all timeouts. A request therefore costs only its bytes
 * and one promise.
 *
 * Invariants:
 * A1. A request settles once: with its answer or an error. After a timeout, or after the connection
 *     was lost or closed, it is unknown whether the request arrived.
 * A2. No request is repeated automatically. The caller decides whether a repeat is safe.
 * A3. Messages of one turn of the event loop are sent together, in order (`turn-end.ts`). Otherwise
 *     the client library would write to its socket once per callback. Each write costs a system call
 *     and wakes up the server. Under load, such writes took 42 % of the time of a gateway.
 * A4. A request made during a disconnection is sent after the reconnection, unless it has timed out
 *     by then.
 */
import {
  ClosedConnectionError,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  NoRespondersError,
  TimeoutError,
} from '@nats-io/transport-node'
import type { Log } from '../../gateway/ports.ts'
import { TransientMap } from '../../protocol/rules/transient-map.ts'
import { Disconnected, errorText } from './failures.ts'
import { type Limited, Overdue } from './journal/overdue.ts'
import type { Namespace } from './server/namespace.ts'
import type { SendingTurnEnd } from './turn-end.ts'

export interface RequestMux {
  /**
   * Sends a request and returns the answer.
   * @param timeout milliseconds to wait for the answer.
   * @throws Forbidden when the account lacks the permission.
   * @throws NoRespondersError when the subject has no subscriber.
   * @throws TimeoutError when no answer arrived in time.
   * @throws Disconnected, ClosedConnectionError when the connection was lost or is closed.
   * @throws InvalidArgumentError when the message is larger than the server accepts.
   */
  ask(
    subject: string,
    data: Uint8Array,
    headers: MsgHdrs | undefined,
    timeout: number,
  ): Promise<Msg>
  /** Sends a message that expects no answer. A failure to send is logged. */
  send(subject: string, data: Uint8Array, headers?: MsgHdrs): void
  /**
   * Resolves when all earlier messages and requests have been passed to the connection, except
   * requests held during a disconnection.
   */
  flush(): Promise<void>
  /** Fails the open requests to a subject after the server rejected a message to it. */
  failRequests(subject: string, reason: Error): void
  /** Handles the loss of the connection: open requests fail, and new requests are held. */
  handleDisconnect(): void
  /** Handles the reconnection: the held requests are sent. */
  handleReconnect(): void
}

interface Question extends Limited {
  readonly subject: string
  readonly send: () => void
  readonly answered: (message: Msg) => void
  readonly failed: (error: Error) => void
}

/**
 * Creates the multiplexer of a connection that is up. Subjects include the installation's prefix.
 * @param turnEnd sends the messages of each turn.
 */
export function createRequestMux(
  connection: NatsConnection,
  space: Namespace,
  log: Log,
  turnEnd: SendingTurnEnd,
): RequestMux {
  const open = new TransientMap<string, Question>()
  const overdue = new Overdue<Question>()
  const inbox = space.newInbox()
  let held: (() => void)[] | undefined
  let counter = 0
  let begun = false

  /** Removes a request that is still open, and returns it so that the caller can settle it. */
  const close = (number: string): Question | undefined => {
    const question = open.get(number)
    if (!question) return undefined
    open.delete(number)
    overdue.delete(question)
    return question
  }
  const begin = (): void => {
    begun = true
    connection.subscribe(`${inbox}.*`, {
      callback: (_, message) => close(message.subject.slice(inbox.length + 1))?.answered(message),
    })
    void connection.closed().then(() => overdue.end())
  }

  return {
    ask: (subject, data, headers, timeout) =>
      new Promise((done, failed) => {
        if (connection.isClosed()) return failed(new ClosedConnectionError())
        if (!begun) begin()
        const number = (counter++).toString(36)
        const reply = `${inbox}.${number}`
        const question: Question = {
          subject,
          until: performance.now() + timeout,
          failed,
          over: () => {
            close(number)
            failed(connection.isClosed() ? new ClosedConnectionError() : new TimeoutError())
          },
          answered: (message) =>
            message.data.length === 0 && message.headers?.code === 503
              ? failed(new NoRespondersError(subject))
              : done(message),
          send: () => {
            if (!open.has(number)) return
            try {
              connection.publish(subject, data, headers ? { reply, headers } : { reply })
            } catch (error) {
              close(number)
              failed(error as Error)
            }
          },
        }
        open.set(number, question)
        overdue.add(question)
        if (held) held.push(question.send)
        else turnEnd.send(question.send)
      }),
    send: (subject, data, headers) =>
      turnEnd.send(() => {
        if (connection.isClosed()) return
        try {
          connection.publish(subject, data, headers ? { headers } : {})
        } catch (error) {
          log.warn(
            { event: 'nats_publish_failed', subject, bytes: data.length, reason: errorText(error) },
            'NATS publish failed',
          )
        }
      }),
    flush: () => new Promise((done) => turnEnd.send(done)),
    failRequests: (subject, reason) => {
      for (const number of open.keys())
        if (open.get(number)?.subject === subject) close(number)?.failed(reason)
    },
    handleDisconnect: () => {
      if (held) return
      held = []
      for (const number of open.keys()) close(number)?.failed(new Disconnected())
    },
    handleReconnect: () => {
      const waiting = held ?? []
      held = undefined
      for (const send of waiting) turnEnd.send(send)
    },
  }
}
