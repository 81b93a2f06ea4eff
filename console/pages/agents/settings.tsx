/**
 * The settings of an agent. Only changed fields are sent, so concurrent changes to other fields are
 * kept. If somebody else has changed the same field, the person decides which value to keep.
 */
import { useEffect, useId } from 'preact/hooks'
import type { CallReply } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { useRefusal } from '../../api/refusal.ts'
import { Button } from '../../design/button.tsx'
import { SelectField, TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { Failure, Notice } from '../../design/states.tsx'
import { Editor } from '../../editor/editor.tsx'
import { Conflict } from '../../form/conflict.tsx'
import { useEdits } from '../../form/edits.ts'
import { may } from '../../shell/session.ts'
import { agentsText as text } from './text.ts'

export type Agent = CallReply<'agent.get'>

const EFFORTS = [
  { value: 'inherit', label: text.effortInherit },
  ...['low', 'medium', 'high', 'xhigh', 'max'].map((value) => ({ value, label: value })),
]
const PRESENTATIONS = [
  { value: 'meta', label: text.presentationMeta },
  { value: 'flat', label: text.presentationFlat },
]
const MEMORIES = [
  { value: '', label: text.memoryDefault },
  { value: 'index', label: text.memoryIndex },
  { value: 'full', label: text.memoryFull },
  { value: 'off', label: text.memoryOff },
]
const STRATEGIES = [
  { value: 'auto', label: text.compactionAuto },
  { value: 'manual', label: text.compactionManual },
  { value: 'disabled', label: text.compactionOff },
]
const THRESHOLDS = [
  { value: 'xs', label: text.thresholdXs },
  { value: 'sm', label: text.thresholdSm },
  { value: 'md', label: text.thresholdMd },
  { value: 'lg', label: text.thresholdLg },
  { value: 'xl', label: text.thresholdXl },
]

type Threshold = NonNullable<NonNullable<Agent['compaction_policy']>['threshold']>

const labels = {
  name: text.name,
  description: text.description,
  system_prompt: text.instructions,
  model_route: text.route,
  model: text.model,
  thinking_effort: text.effort,
  timeout_seconds: text.timeout,
  tool_presentation: text.presentation,
  memory_context: text.memoryContext,
  compaction_policy: text.compaction,
}

/** The values of the form. An empty text or object means that the agent has no value. */
type Values = Required<Pick<Agent, Exclude<keyof typeof labels, 'memory_context'>>> & {
  readonly memory_context: Partial<NonNullable<Agent['memory_context']>>
}
const valuesOf = (agent: Agent): Values => ({
  name: agent.name,
  description: agent.description ?? '',
  system_prompt: agent.system_prompt ?? '',
  model_route: agent.model_route ?? { mode: 'managed' },
  model: agent.model ?? '',
  thinking_effort: agent.thinking_effort ?? 'inherit',
  timeout_seconds: agent.timeout_seconds ?? 0,
  tool_presentation: agent.tool_presentation ?? 'meta',
  memory_context: agent.memory_context ?? {},
  compaction_policy: agent.compaction_policy ?? {},
})

/** Shows the form. `onDirty` receives whether there are unsaved changes. */
export function Settings({
  project,
  agent,
  onSaved,
  onDirty,
}: {
  readonly project: string
  readonly agent: Agent
  readonly onSaved: () => void
  readonly onDirty: (dirty: boolean) => void
}) {
  const edits = useEdits(agent, valuesOf)
  const { shown, changes, conflicts, isChanged, set } = edits
  const { error, attempt, faultOf } = useRefusal()
  const mayEdit = may('project.edit')
  useEffect(() => onDirty(isChanged), [isChanged])
  const save = async (): Promise<void> => {
    await attempt(async () => {
      const isSaved = await edits.update('agent.update', { project, id: agent.id, ...changes })
      if (!isSaved) return
      showDone(text.saved)
      onSaved()
    })
  }
  const { memory_context: memory, compaction_policy: policy } = shown
  return (
    <form
      class="stack"
      aria-label={text.settings}
      onSubmit={(event) => event.preventDefault()}
      onKeyDown={(event) => {
        if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== 's') return
        if (!mayEdit || event.defaultPrevented) return
        event.preventDefault()
        if (isChanged && conflicts.length === 0) void save()
      }}
    >
      <fieldset class="agent-fields stack" disabled={!mayEdit}>
        <div class="grid">
          <TextField
            label={text.name}
            value={shown.name}
            maxLength={63}
            fault={faultOf('name')}
            onValue={(name) => set({ name })}
          />
          <TextField
            label={text.description}
            value={shown.description}
            maxLength={500}
            fault={faultOf('description')}
            onValue={(description) => set({ description })}
          />
        </div>
        <div class="instructions">
          <strong>{text.instructions}</strong>
          <Editor
            label={text.instructions}
            hint={text.instructionsHint}
            language="text"
            value={shown.system_prompt}
            rows={14}
            readOnly={!mayEdit}
            onValue={(system_prompt) => set({ system_prompt })}
            onSubmit={() => void (isChanged && conflicts.length === 0 && save())}
          />
          {faultOf('system_prompt') && <p class="fault">{faultOf('system_prompt')}</p>}
        </div>
        <h2>{text.limits}</h2>
        <ModelFields project={project} shown={shown} set={set} faultOf={faultOf} />
        <div class="grid">
          <SelectField
            label={text.effort}
            value={shown.thinking_effort}
            choices={EFFORTS}
            onValue={(value) =>
              set({ thinking_effort: value as NonNullable<Agent['thinking_effort']> })
            }
          />
          <TextField
            label={text.timeout}
            hint={text.timeoutHint}
            type="number"
            min={0}
            value={String(shown.timeout_seconds)}
            fault={faultOf('timeout_seconds')}
            onValue={(value) => set({ timeout_seconds: Math.max(0, Math.round(+value)) })}
          />
          <SelectField
            label={text.presentation}
            value={shown.tool_presentation}
            choices={PRESENTATIONS}
            onValue={(value) => set({ tool_presentation: value as 'flat' | 'meta' })}
          />
          <SelectField
            label={text.memoryContext}
            value={memory.mode ?? ''}
            choices={MEMORIES}
            onValue={(value) =>
              set({
                memory_context:
                  value === '' ? {} : { ...memory, mode: value as 'index' | 'full' | 'off' },
              })
            }
          />
          <SelectField
            label={text.compaction}
            value={policy.strategy === 'none' ? 'disabled' : (policy.strategy ?? 'auto')}
            choices={STRATEGIES}
            onValue={(value) =>
              set({
                compaction_policy: { ...policy, strategy: value as 'auto' | 'manual' | 'disabled' },
              })
            }
          />
          {(policy.strategy ?? 'auto') === 'auto' && policy.threshold_tokens === undefined && (
            <SelectField
              label={text.threshold}
              value={policy.threshold ?? 'sm'}
              choices={THRESHOLDS}
              fault={faultOf('compaction_policy.threshold')}
              onValue={(value) =>
                set({
                  compaction_policy: { ...policy, threshold: value as Threshold },
                })
              }
            />
          )}
        </div>
      </fieldset>
      {error && <Failure error={error} />}
      {mayEdit && (
        <div class="save-bar stack close">
          {conflicts.length > 0 && (
            <Conflict
              names={conflicts}
              labels={labels}
              long={['system_prompt']}
              changes={changes}
              stored={edits.stored}
              onKeep={edits.keep}
              onTake={edits.take}
            />
          )}
          <div class="row">
            <Button
              kind="primary"
              submit
              disabled={!isChanged || conflicts.length > 0}
              onClick={save}
              shortcut="Control+S"
            >
              {text.save}
            </Button>
            {isChanged && (
              <>
                <Button onClick={edits.discard}>{text.discard}</Button>
                <span class="soft" role="status">
                  {text.unsaved}
                </span>
              </>
            )}
          </div>
        </div>
      )}
    </form>
  )
}

/** The fields for the model route of the agent and for its model. */
function ModelFields({
  project,
  shown,
  set,
  faultOf,
}: {
  readonly project: string
  readonly shown: Values
  readonly set: (part: Partial<Values>) => void
  readonly faultOf: (field: string) => string | undefined
}) {
  const list = useId()
  const { data: catalog } = useQuery('catalog.models', { project }).state.value
  const { data: workers } = useQuery('catalog.worker_models', { project }, { kinds: ['worker'] })
    .state.value
  const route = shown.model_route
  const isWorker = route.mode === 'worker'
  return (
    <div class="grid">
      <SelectField
        label={text.route}
        value={route.mode}
        choices={[
          { value: 'managed', label: text.routeManaged },
          { value: 'worker', label: text.routeWorker },
        ]}
        fault={faultOf('model_route')}
        onValue={(value) =>
          set({
            model_route:
              value === 'worker'
                ? (workers?.items[0]?.route ?? { mode: 'worker' })
                : { mode: 'managed' },
          })
        }
      />
      {isWorker ? (
        <>
          <TextField
            label={text.provider}
            value={route.provider ?? ''}
            list={`${list}-providers`}
            fault={faultOf('model_route.provider')}
            onValue={(provider) => set({ model_route: { ...route, provider } })}
          />
          <TextField
            label={text.workerModel}
            hint={text.workerHint}
            value={route.model ?? ''}
            list={`${list}-models`}
            fault={faultOf('model_route.model')}
            onValue={(model) => set({ model_route: { ...route, model } })}
          />
          <datalist id={`${list}-providers`}>
            {[...new Set(workers?.items.map(({ provider }) => provider))].map((provider) => (
              <option key={provider} value={provider} />
            ))}
          </datalist>
          <datalist id={`${list}-models`}>
            {workers?.items.map(({ provider, model }) => (
              <option key={`${provider}/${model}`} value={model} />
            ))}
          </datalist>
        </>
      ) : (
        <>
          <TextField
            label={text.model}
            hint={text.modelHint}
            placeholder={catalog?.default_model ?? ''}
            value={shown.model}
            list={`${list}-catalog`}
            fault={faultOf('model')}
            onValue={(model) => set({ model })}
          />
          <datalist id={`${list}-catalog`}>
            {catalog?.items.flatMap(({ provider, models }) =>
              models.map(({ id, label }) => (
                <option key={`${provider}/${id}`} value={`${provider}/${id}`}>
                  {label}
                </option>
              )),
            )}
          </datalist>
          {catalog?.reason !== undefined && <Notice tone="warn">{text.modelReason}</Notice>}
        </>
      )}
    </div>
  )
}
