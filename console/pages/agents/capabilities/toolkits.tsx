/**
 * The page of the toolkits of a project, which are sets of rules that select actions. The URL
 * contains the id of the toolkit that is being edited.
 */
import { useState } from 'preact/hooks'
import { type CallReply, call } from '../../../api/client.ts'
import { useQuery } from '../../../api/query.ts'
import { useRefusal } from '../../../api/refusal.ts'
import { useSave } from '../../../api/save.ts'
import { Button, IconButton } from '../../../design/button.tsx'
import { CopyCall } from '../../../design/copy.tsx'
import { SelectField, TextField } from '../../../design/field.tsx'
import { showDone } from '../../../design/notify.ts'
import { Confirm, Dialog, DialogActions } from '../../../design/overlay.tsx'
import { Badge, Empty, Failure, Show } from '../../../design/states.tsx'
import { useChanged } from '../../../form/unsaved.ts'
import { currentUrl, setQuery } from '../../../router/router.ts'
import { Page, PageAction, type PageProps } from '../../../shell/page.tsx'
import { may } from '../../../shell/session.ts'
import { agentsText as text } from '../text.ts'

type Toolkit = CallReply<'toolkit.list'>['items'][number]
type Selector = Toolkit['actions'][number]

const TYPES = [
  { value: 'exact', label: text.exact },
  { value: 'group', label: text.group },
  { value: 'wildcard', label: text.wildcard },
  { value: 'custom', label: text.custom },
  { value: 'platform', label: text.platform },
]

export default function ToolkitsPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const { state, reload } = useQuery('toolkit.list', { project }, { kinds: ['toolkit'] })
  const wanted = currentUrl.value.query.get('edit') ?? ''
  const [deleted, setDeleted] = useState<Toolkit>()
  const mayEdit = may('project.edit')
  const create = (): void => setQuery({ edit: 'new' })
  const edited = state.value.data?.items.find(({ id }) => id === wanted)
  return (
    <Page
      title={text.toolkits}
      actions={
        <>
          <CopyCall name="toolkit.list" input={{ project }} />
          {mayEdit && <PageAction label={text.newToolkit} keys="c" onRun={create} />}
        </>
      }
    >
      <Show of={state.value} retry={reload}>
        {({ items }) => (
          <ul class="stack close">
            {items.map((kit) => (
              <li class="card" key={kit.id}>
                <header>
                  <div class="row">
                    <h2 class="user-text">{kit.name}</h2>
                    {kit.source === 'system' && <Badge>{text.sourceSystem}</Badge>}
                    <span class="soft small">{text.selectorCount(kit.actions.length)}</span>
                  </div>
                  {mayEdit && kit.source === 'project' && (
                    <div class="row">
                      <IconButton
                        icon="edit"
                        label={text.edit(kit.name)}
                        onClick={() => setQuery({ edit: kit.id })}
                      />
                      <IconButton
                        icon="trash"
                        danger
                        label={text.deleteNamed(kit.name)}
                        onClick={() => setDeleted(kit)}
                      />
                    </div>
                  )}
                </header>
                <div class="body stack close">
                  {kit.description && <p class="user-text">{kit.description}</p>}
                  <div class="row">
                    {kit.actions.map(({ selector_type, selector }) => (
                      <code key={`${selector_type} ${selector}`}>
                        {selector_type} <span class="user-text">{selector}</span>
                      </code>
                    ))}
                  </div>
                </div>
              </li>
            ))}
            {items.length === 0 && <Empty title={text.toolkitFirst}>{text.toolkitHint}</Empty>}
          </ul>
        )}
      </Show>
      {mayEdit && (wanted === 'new' || edited) && (
        <ToolkitDialog
          key={wanted}
          project={project}
          {...(edited && { kit: edited })}
          onClose={(saved) => {
            setQuery({ edit: '' })
            if (saved) reload()
          }}
        />
      )}
      {deleted && (
        <Confirm
          title={text.deleteQuestion(deleted.name)}
          action={text.delete}
          danger
          onConfirm={async () => {
            await call('toolkit.delete', { project, id: deleted.id })
            showDone(text.toolkitDeleted)
            reload()
          }}
          onClose={() => setDeleted(undefined)}
        >
          <p>{text.toolkitDelete}</p>
        </Confirm>
      )}
    </Page>
  )
}

function ToolkitDialog({
  project,
  kit,
  onClose,
}: {
  readonly project: string
  readonly kit?: Toolkit
  readonly onClose: (saved: boolean) => void
}) {
  const [name, setName] = useState(kit?.name ?? '')
  const [description, setDescription] = useState(kit?.description ?? '')
  const [rules, setRules] = useState<readonly Selector[]>(
    kit?.actions ?? [{ selector_type: 'group', selector: '' }],
  )
  const { error, attempt, faultOf } = useRefusal()
  const names = useQuery('action.list', { project, limit: 200 }).state.value.data
  const change = (index: number, more: Partial<Selector>): void =>
    setRules(rules.map((rule, at) => (at === index ? { ...rule, ...more } : rule)))
  const replace = useSave(kit)
  const { isChanged } = useChanged([name, description, rules])
  const save = async (): Promise<void> => {
    const body = {
      project,
      name: name.trim(),
      actions: rules.filter(({ selector }) => selector.trim() !== ''),
      ...(description.trim() !== '' && { description: description.trim() }),
      ...(kit?.tags && { tags: kit.tags }),
    }
    await attempt(async () => {
      await (kit
        ? replace('toolkit.replace', { ...body, id: kit.id })
        : call('toolkit.create', body))
      onClose(true)
    })
  }
  return (
    <Dialog title={kit ? text.toolkitEdit : text.newToolkit} onClose={() => onClose(false)} wide>
      <form class="stack" onSubmit={(event) => event.preventDefault()}>
        <TextField
          label={text.name}
          value={name}
          maxLength={80}
          fault={faultOf('name')}
          onValue={setName}
        />
        <TextField
          label={text.description}
          value={description}
          maxLength={1000}
          fault={faultOf('description')}
          onValue={setDescription}
        />
        <fieldset class="agent-fields stack close">
          <legend>{text.selectors}</legend>
          {rules.map((rule, index) => (
            <div class="rule" key={index}>
              <SelectField
                label={text.selectorType}
                unlabelled
                value={rule.selector_type}
                choices={TYPES}
                onValue={(value) =>
                  change(index, { selector_type: value as Selector['selector_type'] })
                }
              />
              <TextField
                label={text.selector}
                unlabelled
                value={rule.selector}
                list="action-names"
                fault={faultOf(`actions[${index}].selector`)}
                onValue={(selector) => change(index, { selector })}
              />
              <IconButton
                icon="close"
                label={text.removeSelector(rule.selector)}
                onClick={() => setRules(rules.filter((_, at) => at !== index))}
              />
            </div>
          ))}
          <datalist id="action-names">
            {names?.items.map(({ name: action }) => (
              <option key={action} value={action} />
            ))}
          </datalist>
          <div>
            <Button
              icon="plus"
              onClick={() => setRules([...rules, { selector_type: 'exact', selector: '' }])}
            >
              {text.addSelector}
            </Button>
          </div>
        </fieldset>
        {error && <Failure error={error} />}
        <DialogActions
          onClose={() => onClose(false)}
          action={text.save}
          submit
          disabled={(kit !== undefined && !isChanged) || name.trim() === ''}
          onClick={save}
        />
      </form>
    </Dialog>
  )
}
