/** What the errors of the NATS client mean. */
import { JetStreamApiError } from '@nats-io/jetstream'
import {
  NoRespondersError,
  PermissionViolationError,
  RequestError,
  TimeoutError,
} from '@nats-io/transport-node'
import { StartFault } from '../process/fault.ts'

/** The connection was lost before the answer came. */
export class Disconnected extends Error {
  override readonly name = 'Disconnected'
  constructor() {
    super('the connection was lost before the answer came')
  }
}

/** The account that this process uses lacks a permission. The message names it. */
export class Forbidden extends StartFault {
  constructor({ operation, subject, queue }: PermissionViolationError) {
    const what = operation === 'publish' ? 'publish to' : 'subscribe to'
    const group = queue === undefined ? '' : ` in the queue group "${queue}"`
    super(
      `The NATS account of this process may not ${what} "${subject}"${group}: give it that permission; \`baton nats-permissions\` prints those of each role.`,
    )
  }
}
/** What names the missing permission, when an error is about one. */
export function forbidden(error: unknown): Forbidden | undefined {
  if (error instanceof Forbidden) return error
  if (error instanceof PermissionViolationError) return new Forbidden(error)
  return error instanceof Error && error.cause !== undefined ? forbidden(error.cause) : undefined
}

/** Codes of the JetStream API that are acted upon (nats-server, server/errors.json). */
export const codes = {
  streamNotFound: 10059,
  notEnabledForAccount: 10039,
  noMessageFound: 10037,
  wrongLastSequence: 10071,
  wrongLastSequenceUnknown: 10164,
  duplicateInProcess: 10158,
  /** Limits of the account, of the server's memory or disk, of the stream: the message was not stored. */
  accountResourcesExceeded: 10002,
  insufficientResources: 10023,
  storageResourcesExceeded: 10047,
  streamStoreFailed: 10077,
} as const
const outOfSpace: ReadonlySet<number> = new Set([
  codes.accountResourcesExceeded,
  codes.insufficientResources,
  codes.storageResourcesExceeded,
  codes.streamStoreFailed,
])

/** The API's code of an error, or undefined when it is none of the API's. */
export const codeOf = (error: unknown): number | undefined =>
  error instanceof JetStreamApiError ? error.code : undefined

/** A compare-and-set was refused: the subject's last sequence is another one. */
export const isWrongSequence = (error: unknown): boolean => {
  const code = codeOf(error)
  return code === codes.wrongLastSequence || code === codes.wrongLastSequenceUnknown
}

/** The stream's leader did not store a message because there is no space for it. */
export const isOutOfSpace = (error: unknown): boolean => outOfSpace.has(codeOf(error) ?? 0)

/** Nobody listens on the subject of a request. */
export const isNoResponders = (error: unknown): boolean =>
  error instanceof NoRespondersError || (error instanceof RequestError && error.isNoResponders())
/** A request got no answer in time, or none can come any more. */
export const isUnanswered = (error: unknown): boolean =>
  error instanceof TimeoutError || error instanceof Disconnected

/** One sentence for a log line or a message. */
export const sentence = (error: unknown): string =>
  error instanceof Error ? error.message || error.name : String(error)
