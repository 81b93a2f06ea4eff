/** Bounds of sessions. Lengths in characters unless they say otherwise. */
export const limits = {
  /** Bytes of inline images and documents after decoding, and of a request's content as a whole. */
  inline: 262_144,
  /** Application context: items, their names, bytes of one and of all; names that a session remembers. After a compaction all of these are written in one commit. */
  context: { items: 8, name: 64, content: 8192, total: 16_384, names: 100 },
  /** Bytes of an output schema. */
  output_schema: 32_768,
  nudge: 32_768,
  key: 255,
  session_key: 512,
  title: 512,
  /** Rows of one append, and blocks of one message. */
  append: 100,
  blocks: 200,
  metadata: 16_384,
  /** Equal tool calls of one turn that are allowed, generations of one turn, and calls of one segment. */
  repeats: 3,
  generations: 100,
  calls: 64,
  /** Keys of turns and of nudges that a session remembers; the oldest are forgotten. */
  keys: 5000,
  nudge_keys: 1000,
  /** Ids of tool uses that it remembers, likewise. */
  known_calls: 1000,
  /** Turns that have not ended and nudges that wait, together. */
  turns: 50,
  /** What a model is shown at most, where no compaction keeps it smaller: rows, and characters of their content. About what the largest models take. */
  window: { rows: 2000, size: 4_194_304 },
  /** Milliseconds that a compaction may take, and characters of its summary: what was summed up first is given up. */
  compaction: 30_000,
  summary: 262_144,
  /**
   * Characters of the results of one row with the ids that they answer, and of a result that is an error. A character takes up to six
   * bytes of a stream's line, and clients read lines below 8 MiB; a model's answer is bounded in bytes, as any result of a job.
   */
  results: 1_200_000,
  fault: 65_536,
  /** Characters of what a model says before it is stored that are shown; each piece counts for some more, which is what a block of its own takes. */
  preview: 1_200_000,
  /**
   * Files: characters of a name and of an idempotency key; bytes of a text, of anything else, and of an upload as a whole (base64 and
   * the form around it); pages of a PDF; files of one session, and erased ones that it remembers; milliseconds for which bytes are awaited.
   */
  file: {
    name: 256,
    key: 255,
    text: 102_400,
    bytes: 5_242_880,
    body: 7_340_032,
    pages: 50,
    most: 200,
    erased: 1000,
    awaited: 600_000,
  },
  /** Bytes of files that a model is shown in one request. */
  shown: 20_971_520,
  /** Attempts at a generation, and at a call of an action that may be repeated. */
  attempts: 3,
} as const
