/** Limits of sessions. Lengths are in characters unless stated otherwise. */
export const limits = {
  /** Bytes of one inline image or document, after decoding. */
  inline: 262_144,
  /**
   * Application context: number of items, length of a name, bytes of one item and of all; number of
   * names that a session remembers. After a compaction, the values of all remembered names are
   * written in one commit.
   */
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
  /** Equal tool calls allowed in one turn, generations of one turn, and calls of one segment. */
  repeats: 3,
  generations: 100,
  calls: 64,
  /**
   * Idempotency keys of turns and of nudges that a session remembers; the oldest are dropped first.
   */
  keys: 5000,
  nudge_keys: 1000,
  /** Ids of tool uses that a session remembers; the oldest are dropped first. */
  known_calls: 1000,
  /** Turns that have not ended plus pending nudges. */
  turns: 50,
  /**
   * Upper bound of what a model is shown when compaction does not keep it smaller: rows, and
   * characters of their content. About the capacity of the largest models.
   */
  window: { rows: 2000, size: 4_194_304 },
  /**
   * Milliseconds that a compaction may take, and characters of its summary. A longer summary loses
   * its beginning.
   */
  compaction: 30_000,
  summary: 262_144,
  /**
   * Characters of the results in one row, including their tool use ids, and of one error result. A
   * character takes up to six bytes of a line in a stream, and clients read lines below 8 MiB. A
   * model's answer is bounded in bytes, like any result of a job.
   */
  results: 1_200_000,
  fault: 65_536,
  /**
   * Characters of a model's uncommitted output that previews show. Each chunk counts for a few more
   * than its length, for the overhead of a separate block.
   */
  preview: 1_200_000,
  /**
   * Files: characters of a name and of an idempotency key; bytes of a text file, of any other file,
   * and of an upload as a whole (base64 and the form around it); pages of a PDF; files of one
   * session, and erased files that it remembers; milliseconds until an unfinished upload is
   * abandoned.
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
