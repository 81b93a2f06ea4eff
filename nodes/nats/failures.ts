/** What the errors of the NATS client mean. */
import { JetStreamApiError } from '@nats-io/jetstream'
import { NoRespondersError, RequestError, TimeoutError } from '@nats-io/transport-node'

/** The connection was lost before the answer came. */
export class Disconnected extends Error {
  override readonly name = 'Disconnected'
  constructor() {
    super('the connection was lost before the answer came')
  }
}

/** Codes of the JetStream API that are acted upon (nats-server, server/errors.json). */
export const codes = {
  streamNotFound: 10059,
  noMessageFound: 10037,
  wrongLastSequence: 10071,
  wrongLastSequenceUnknown: 10164,
  duplicateInProcess: 10158,
} as const

/** The API's code of an error, or undefined when it is none of the API's. */
export const codeOf = (error: unknown): number | undefined =>
  error instanceof JetStreamApiError ? error.code : undefined

/** A compare-and-set was refused: the subject's last sequence is another one. */
export const isWrongSequence = (error: unknown): boolean => {
  const code = codeOf(error)
  return code === codes.wrongLastSequence || code === codes.wrongLastSequenceUnknown
}

/** Nobody listens on the subject of a request. */
export const isNoResponders = (error: unknown): boolean =>
  error instanceof NoRespondersError || (error instanceof RequestError && error.isNoResponders())
/** A request got no answer in time, or none can come any more. */
export const isUnanswered = (error: unknown): boolean =>
  error instanceof TimeoutError || error instanceof Disconnected

/** One sentence for a log line or a message. */
export const sentence = (error: unknown): string =>
  error instanceof Error ? error.message || error.name : String(error)
