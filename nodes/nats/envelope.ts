/**
 * How an envelope's bytes travel: with a checksum of their own in a header, because a flipped bit in a stored block can go
 * unnoticed below. What does not match is never handed on.
 */
import { headers, type MsgHdrs } from '@nats-io/transport-node'
import { crc32 } from 'node:zlib'
import type { Stored } from '../host/ports.ts'
import { EXPECTED } from './journal/publish.ts'

const CHECKSUM = 'Baton-Crc'
const MESSAGE_ID = 'Nats-Msg-Id'

const checksum = (data: Uint8Array): string => crc32(data).toString(16)

/** Headers of an envelope to be appended behind the message `expected` of its subject. */
export function sealed(data: Uint8Array, message_id: string, expected: number): MsgHdrs {
  const made = headers()
  made.set(MESSAGE_ID, message_id)
  made.set(EXPECTED, String(expected))
  made.set(CHECKSUM, checksum(data))
  return made
}

/** A stored envelope was changed by something other than the service. */
export class DamagedEnvelope extends Error {
  constructor(stream: string, sequence: number) {
    super(
      `message ${sequence} of ${stream} is damaged: its checksum does not match. Restore the stream from a replica or a backup.`,
    )
  }
}

/** A message of a journal as the host sees it. Throws DamagedEnvelope. */
export function opened(
  stream: string,
  sequence: number,
  data: Uint8Array,
  header: MsgHdrs | undefined,
): Stored {
  if (header?.get(CHECKSUM) !== checksum(data)) throw new DamagedEnvelope(stream, sequence)
  return { sequence, message_id: header.get(MESSAGE_ID), data }
}
