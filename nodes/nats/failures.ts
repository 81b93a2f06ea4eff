/** Classifies the errors of the NATS client. */
import { JetStreamApiError } from '@nats-io/jetstream'
import {
  NoRespondersError,
  PermissionViolationError,
  RequestError,
  TimeoutError,
} from '@nats-io/transport-node'
import { StartFault } from '../process/fault.ts'

/** Thrown when the connection was lost before the answer arrived. */
export class Disconnected extends Error {
  override readonly name = 'Disconnected'
  constructor() {
    super('the connection was lost before the reply arrived')
  }
}

/** Thrown when the account of this process lacks a permission. The message names the permission. */
export class Forbidden extends StartFault {
  constructor({ operation, subject, queue }: PermissionViolationError) {
    const what = operation === 'publish' ? 'publish to' : 'subscribe to'
    const group = queue === undefined ? '' : ` in the queue group "${queue}"`
    super(
      `The NATS account of this process may not ${what} "${subject}"${group}: ` +
        'grant it that permission; ' +
        '`baton nats-permissions` prints the permissions of each role.',
    )
  }
}
/**
 * Returns the error that names the missing permission, if the given error or one of its causes is a
 * permission violation. Returns undefined otherwise.
 */
export function findViolation(error: unknown): Forbidden | undefined {
  if (error instanceof Forbidden) return error
  if (error instanceof PermissionViolationError) return new Forbidden(error)
  return error instanceof Error && error.cause !== undefined
    ? findViolation(error.cause)
    : undefined
}

/** Error codes of the JetStream API that the program handles (nats-server, server/errors.json). */
export const codes = {
  streamNotFound: 10059,
  notEnabledForAccount: 10039,
  noMessageFound: 10037,
  wrongLastSequence: 10071,
  wrongLastSequenceUnknown: 10164,
  duplicateInProcess: 10158,
  /**
   * The next four codes mean that the message was not stored: a limit of the account or the stream
   * was reached, or the server's memory or disk is full.
   */
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

/** Returns the JetStream API code of an error; undefined for other errors. */
export const codeOf = (error: unknown): number | undefined =>
  error instanceof JetStreamApiError ? error.code : undefined

/**
 * Whether a compare-and-set was rejected because the subject's last sequence is not the expected
 * one.
 */
export const isWrongSequence = (error: unknown): boolean => {
  const code = codeOf(error)
  return code === codes.wrongLastSequence || code === codes.wrongLastSequenceUnknown
}

/** Whether the stream's leader did not store a message for lack of space. */
export const isOutOfSpace = (error: unknown): boolean => outOfSpace.has(codeOf(error) ?? 0)

/** Whether a request failed because its subject has no subscriber. */
export const isNoResponders = (error: unknown): boolean =>
  error instanceof NoRespondersError || (error instanceof RequestError && error.isNoResponders())
/** Whether a request timed out or lost its connection, so that no answer will arrive. */
export const isUnanswered = (error: unknown): boolean =>
  error instanceof TimeoutError || error instanceof Disconnected

/** Returns the error's text for a log line or a message. */
export const errorText = (error: unknown): string =>
  error instanceof Error ? error.message || error.name : String(error)
