/**
 * Sends messages and requests over one connection. All answers arrive at one subscription and are
 * matched by a number, and one timer serves all timeouts. A request therefore costs little more
 * than its bytes.
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
import { Disconnected, errorText } from './failures.ts'
import { type Limited, Overdue } from './journal/overdue.ts'
import type { Namespace } from './server/namespace.ts'
import type { SendingTurnEnd } from './turn-end.ts'

export interface RequestMux {
  /**
   * Sends a request.
   * @param timeout milliseconds to wait for the answer.
   * @param settle called once, with the answer or with an error of `ask`. It must not throw.
   */
  request(
    subject: string,
    data: Uint8Array,
    headers: MsgHdrs | undefined,
    timeout: number,
    settle: (outcome: Msg | Error) => void,
  ): void
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

/** A request that is not settled. */
interface Question extends Limited {
  readonly subject: string
  settle(outcome: Msg | Error): void
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
  const open = new Overdue<Question>()
  const inbox = space.newInbox()
  let held: (() => void)[] | undefined
  let begun = false

  const begin = (): void => {
    begun = true
    const start = inbox.length + 1
    connection.subscribe(`${inbox}.*`, {
      callback: (_, message) => {
        const question = open.take(Number(message.subject.slice(start)))
        if (question && message.data.length === 0 && message.headers?.code === 503)
          question.settle(new NoRespondersError(question.subject))
        else question?.settle(message)
      },
    })
    void connection.closed().then(() => open.end())
  }
  const request: RequestMux['request'] = (subject, data, headers, timeout, settle) => {
    if (connection.isClosed()) return settle(new ClosedConnectionError())
    if (!begun) begin()
    const number = open.add({
      subject,
      until: performance.now() + timeout,
      settle,
      over: () => settle(connection.isClosed() ? new ClosedConnectionError() : new TimeoutError()),
    })
    const publish = () => {
      if (!open.has(number)) return
      const reply = `${inbox}.${number}`
      try {
        connection.publish(subject, data, headers ? { reply, headers } : { reply })
      } catch (error) {
        open.take(number)?.settle(error as Error)
      }
    }
    if (held) held.push(publish)
    else turnEnd.send(publish)
  }

  return {
    request,
    ask: (subject, data, headers, timeout) =>
      new Promise((done, failed) =>
        request(subject, data, headers, timeout, (outcome) =>
          outcome instanceof Error ? failed(outcome) : done(outcome),
        ),
      ),
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
      for (const question of open.takeIf((question) => question.subject === subject))
        question.settle(reason)
    },
    handleDisconnect: () => {
      if (held) return
      held = []
      for (const question of open.takeIf(() => true)) question.settle(new Disconnected())
    },
    handleReconnect: () => {
      const waiting = held ?? []
      held = undefined
      for (const send of waiting) turnEnd.send(send)
    },
  }
}
