/**
 * Limits of sessions. Lengths are in characters unless stated otherwise; `metadata` is in bytes as
 * JSON.
 */
export const limits = {
  /** Bytes of one inline image or document after decoding. */
  inline: 262_144,
  /**
   * Application context: number of items, length of a name, bytes of one item, bytes of all items,
   * and number of names that a session stores. After a compaction, the values of all stored names
   * are written in one commit.
   */
  context: { items: 8, name: 64, content: 8192, total: 16_384, names: 100 },
  /** Bytes of an output schema. */
  output_schema: 32_768,
  nudge: 32_768,
  key: 255,
  session_key: 512,
  title: 512,
  /** Rows of one append. */
  append: 100,
  /** Blocks of one message. */
  blocks: 200,
  metadata: 16_384,
  /** Equal tool calls of one turn, unless the definition of the turn sets another limit. */
  repeats: 3,
  /** Generations of one turn. */
  generations: 100,
  /** Tool calls of one segment. */
  calls: 64,
  /** Idempotency keys of turns that a session stores. The oldest are dropped first. */
  keys: 5000,
  /** Idempotency keys of nudges that a session stores. The oldest are dropped first. */
  nudge_keys: 1000,
  /** Ids of tool uses that a session stores. The oldest are dropped first. */
  known_calls: 1000,
  /** Turns that have not ended, together with pending nudges. */
  turns: 50,
  /**
   * The maximum window, in rows and in characters of their content, if compaction does not keep it
   * smaller. It is roughly the capacity of the largest models.
   */
  window: { rows: 2000, size: 4_194_304 },
  /** Milliseconds that a compaction may take. */
  compaction: 30_000,
  /** Characters of the summary of a compaction. Only the end of a longer summary is kept. */
  summary: 262_144,
  /**
   * Characters of all results in one row, including their tool use ids. In a stream, one character
   * takes up to six bytes of a line, and clients read lines of less than 8 MiB. The answer of a
   * model is limited in bytes, like any result of a job.
   */
  results: 1_200_000,
  /** Characters of one error result. */
  fault: 65_536,
  /**
   * Characters of uncommitted output that previews show. Each chunk counts for slightly more than
   * its length, because it may need a separate block.
   */
  preview: 1_200_000,
  /**
   * Limits of files. `name` and `key`: characters of a name and of an idempotency key. `text`:
   * bytes of a text file. `bytes`: bytes of any other file. `body`: bytes of an upload with its
   * encoding. `pages`: pages of a PDF. `most`: files of one session. `erased`: erased files that a
   * session stores. `awaited`: milliseconds until an unfinished upload is abandoned.
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
  /** Bytes of all files that are shown to a model in one request. */
  shown: 20_971_520,
  /** Attempts of a generation, and of a call of a repeatable action. */
  attempts: 3,
} as const
