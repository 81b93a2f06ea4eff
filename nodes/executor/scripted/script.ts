/**
 * The language of the scripted model, documented in docs/scripted-model.md: rules in YAML. The
 * first rule that matches determines the answer.
 */
import { type Static, Type } from 'typebox'

const closed = { additionalProperties: false }
const text = Type.String({ maxLength: 65_536 })
const pattern = Type.String({ minLength: 1, maxLength: 1000 })
const duration = Type.String({ pattern: '^\\d+(\\.\\d+)?(ms|s|m)$' })
const When = Type.Object(
  {
    text: Type.Optional(pattern),
    turn: Type.Optional(Type.Integer({ minimum: 1 })),
    step: Type.Optional(Type.Integer({ minimum: 1 })),
    after: Type.Optional(pattern),
    result: Type.Optional(pattern),
    error: Type.Optional(Type.Boolean()),
  },
  closed,
)
const Calls = Type.Record(
  Type.String({ minLength: 1, maxLength: 200 }),
  Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Null()]),
)
const Failure = Type.Object(
  {
    as: Type.Union([
      Type.Integer({ minimum: 400, maximum: 599 }),
      Type.Enum(['timeout', 'disconnect', 'malformed']),
    ]),
    times: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    retry_after: Type.Optional(duration),
  },
  closed,
)
const Rule = Type.Object(
  {
    when: Type.Optional(Type.Union([pattern, When])),
    think: Type.Optional(text),
    say: Type.Optional(text),
    call: Type.Optional(Type.Union([Calls, Type.Array(Calls, { minItems: 1, maxItems: 64 })])),
    delay: Type.Optional(duration),
    pace: Type.Optional(duration),
    chunk: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 })),
    fail: Type.Optional(
      Type.Union([
        Failure,
        Type.Integer({ minimum: 400, maximum: 599 }),
        Type.Enum(['timeout', 'disconnect', 'malformed']),
      ]),
    ),
    stop: Type.Optional(Type.Enum(['end_turn', 'max_tokens', 'stop_sequence', 'refusal'])),
    usage: Type.Optional(
      Type.Object(
        {
          input_tokens: Type.Optional(Type.Integer({ minimum: 0 })),
          output_tokens: Type.Optional(Type.Integer({ minimum: 0 })),
        },
        closed,
      ),
    ),
  },
  closed,
)
export const Script = Type.Object(
  { script: Type.Array(Rule, { minItems: 1, maxItems: 500 }) },
  closed,
)

export type When = Static<typeof When>
export type Rule = Static<typeof Rule>
/** The rules of a script, in order. */
export type Script = readonly Rule[]
/** The rules for an agent without a script. */
export const DEFAULT_SCRIPT: Script = [{ say: 'You said: {{text}}' }]
