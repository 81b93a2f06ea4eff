/**
 * The encoding of envelopes in messages. A header contains a checksum of the bytes, because the
 * storage might not detect a flipped bit in a stored block. A message with a wrong checksum is
 * never passed on.
 */

import { crc32 } from 'node:zlib'
import { headers, type MsgHdrs } from '@nats-io/transport-node'
import { type Stored, UnreadableEntry } from '../host/ports.ts'
import { EXPECTED } from './journal/publish.ts'

const CHECKSUM = 'Baton-Crc'
const MESSAGE_ID = 'Nats-Msg-Id'

const checksum = (data: Uint8Array): string => crc32(data).toString(16)

/**
 * Returns the headers of an envelope. With these headers, the server stores the envelope only if
 * the last message of its subject has the sequence `expected`.
 */
export function envelopeHeaders(data: Uint8Array, message_id: string, expected: number): MsgHdrs {
  const made = headers()
  made.set(MESSAGE_ID, message_id)
  made.set(EXPECTED, String(expected))
  made.set(CHECKSUM, checksum(data))
  return made
}

/**
 * Thrown when the checksum of a stored envelope is missing or wrong. The bytes were then not
 * written by the service, or have changed since.
 */
export class DamagedEnvelope extends UnreadableEntry {
  constructor(stream: string, sequence: number) {
    super(
      `message ${sequence} of ${stream} is damaged: its checksum does not match. ` +
        'Restore the stream from a replica or a backup.',
    )
  }
}

/**
 * Checks a journal message and returns it in the form that the host uses.
 * @throws DamagedEnvelope when its checksum is missing or wrong.
 */
export function openEnvelope(
  stream: string,
  sequence: number,
  data: Uint8Array,
  header: MsgHdrs | undefined,
): Stored {
  if (header?.get(CHECKSUM) !== checksum(data)) throw new DamagedEnvelope(stream, sequence)
  return { sequence, message_id: header.get(MESSAGE_ID), data }
}
