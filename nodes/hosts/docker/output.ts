/**
 * Decodes the output of containers without a terminal, which the engine sends in frames. A frame
 * has a header of 8 bytes (stream, three zeros, length as a big-endian integer), followed by its
 * content.
 */

/** Size of the header of a frame in bytes. */
const HEADER_BYTES = 8

/** Returns a function that receives bytes as they arrive and forwards the content of the frames. */
export function createOutputDecoder(onData: (part: Buffer) => void): (part: Buffer) => void {
  let header = Buffer.alloc(0)
  let left = 0
  return (part) => {
    let at = 0
    while (at < part.length) {
      if (left > 0) {
        const size = Math.min(left, part.length - at)
        onData(part.subarray(at, at + size))
        left -= size
        at += size
        continue
      }
      const more = part.subarray(at, at + HEADER_BYTES - header.length)
      header = Buffer.concat([header, more])
      at += more.length
      if (header.length < HEADER_BYTES) return
      left = header.readUInt32BE(4)
      header = Buffer.alloc(0)
    }
  }
}
