/** The options with which a blueprint is planned and applied. */
import { Checkbox, SelectField } from '../../design/field.tsx'
import type { ReadFiles } from './read-files.ts'
import { blueprintsText as text } from './text.ts'
import type { ApplyOptions } from './use-apply.ts'

/** The options, and which of the blueprints in the files they concern. */
export interface Choices extends ApplyOptions {
  /** Index of the selected blueprint among those in the files. */
  readonly at: number
}

/** Shows the options. A blueprint can be selected if the files have several. */
export const Options = ({
  blueprints,
  choices,
  onChoices,
}: {
  readonly blueprints: ReadFiles['blueprints']
  readonly choices: Choices
  readonly onChoices: (choices: Choices) => void
}) => (
  <section class="options" aria-label={text.options}>
    {blueprints.length > 1 && (
      <SelectField
        label={text.which}
        hint={text.whichHint}
        choices={blueprints.map(({ request: { namespace, blueprint_key } }, at) => ({
          value: String(at),
          label: [namespace, blueprint_key].filter(Boolean).join(' / ') || text.unnamed,
        }))}
        value={String(choices.at)}
        onValue={(at) => onChoices({ ...choices, at: Number(at) })}
      />
    )}
    <SelectField
      label={text.protectOption}
      choices={[
        { value: '', label: text.protectKeep },
        { value: 'on', label: text.protectOn },
        { value: 'off', label: text.protectOff },
      ]}
      value={choices.protect}
      onValue={(protect) => onChoices({ ...choices, protect: protect as Choices['protect'] })}
    />
    <Checkbox
      label={
        <>
          {text.prune} <span class="small soft block">{text.pruneHint}</span>
        </>
      }
      checked={choices.prune}
      onChecked={(prune) => onChoices({ ...choices, prune })}
    />
  </section>
)
