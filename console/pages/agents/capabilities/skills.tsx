/**
 * The page of the skills of a project. Their instructions are edited here or imported from a file.
 */
import { useRef, useState } from 'preact/hooks'
import { type CallReply, call } from '../../../api/client.ts'
import { useQuery } from '../../../api/query.ts'
import { useRefusal } from '../../../api/refusal.ts'
import { useSave } from '../../../api/save.ts'
import { Button, IconButton } from '../../../design/button.tsx'
import { CopyCall } from '../../../design/copy.tsx'
import { TextArea, TextField } from '../../../design/field.tsx'
import { EmptyCard } from '../../../design/listed.tsx'
import { showDone, showError } from '../../../design/notify.ts'
import { Confirm, Dialog, DialogActions } from '../../../design/overlay.tsx'
import { Badge, Failure, Show } from '../../../design/states.tsx'
import { Editor } from '../../../editor/editor.tsx'
import { useChanged } from '../../../form/unsaved.ts'
import { Markdown } from '../../../markdown/markdown.tsx'
import { currentUrl, setQuery } from '../../../router/router.ts'
import { Page, PageAction, type PageProps } from '../../../shell/page.tsx'
import { may } from '../../../shell/session.ts'
import { agentsText as text } from '../text.ts'

type Skill = CallReply<'skill.list'>['items'][number]

const sources: Readonly<Record<Skill['source'], string>> = {
  system: text.sourceSystem,
  organization: text.sourceOrganization,
  project: text.sourceProject,
}

export default function SkillsPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const { state, reload } = useQuery('skill.list', { project }, { kinds: ['skill'] })
  const wanted = currentUrl.value.query.get('edit') ?? ''
  const [deleted, setDeleted] = useState<Skill>()
  const file = useRef<HTMLInputElement>(null)
  const mayEdit = may('project.edit')
  const create = (): void => setQuery({ edit: 'new' })
  const choose = (): void => file.current?.click()
  const importFile = async (chosen: File): Promise<void> => {
    const { id, name } = await call('skill.import', { project, content: await chosen.text() })
    showDone(text.imported(name))
    reload()
    setQuery({ edit: id })
  }
  const edited = state.value.data?.items.find(({ id }) => id === wanted)
  const buttons = mayEdit && (
    <>
      <PageAction label={text.importSkill} icon="upload" keys="i" primary={false} onRun={choose} />
      <PageAction label={text.newSkill} keys="c" onRun={create} />
    </>
  )
  return (
    <Page
      title={text.skills}
      actions={
        <>
          <CopyCall name="skill.list" input={{ project }} />
          {buttons}
        </>
      }
    >
      <input
        ref={file}
        type="file"
        accept=".md,.markdown,.txt,text/markdown,text/plain"
        hidden
        aria-label={text.importSkill}
        onChange={({ currentTarget }) => {
          const [chosen] = currentTarget.files ?? []
          if (chosen) void importFile(chosen).catch(showError)
          // Allows the same file to be selected again.
          currentTarget.value = ''
        }}
      />
      <Show of={state.value} retry={reload}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyCard icon="star" title={text.skillFirst}>
              <p>{text.skillHint}</p>
            </EmptyCard>
          ) : (
            <ul class="stack close">
              {items.map((skill) => (
                <li class="card" key={skill.id}>
                  <header>
                    <div class="row">
                      <h2 class="user-text">{skill.name}</h2>
                      {skill.source !== 'project' && <Badge>{sources[skill.source]}</Badge>}
                    </div>
                    <div class="row">
                      {mayEdit && skill.source === 'project' ? (
                        <IconButton
                          icon="edit"
                          label={text.edit(skill.name)}
                          onClick={() => setQuery({ edit: skill.id })}
                        />
                      ) : (
                        <Button onClick={() => setQuery({ edit: skill.id })}>
                          {text.skillView}
                        </Button>
                      )}
                      {mayEdit && skill.source === 'project' && (
                        <IconButton
                          icon="trash"
                          danger
                          label={text.deleteNamed(skill.name)}
                          onClick={() => setDeleted(skill)}
                        />
                      )}
                    </div>
                  </header>
                  {skill.description && <p class="body user-text">{skill.description}</p>}
                </li>
              ))}
            </ul>
          )
        }
      </Show>
      {(edited || (mayEdit && wanted === 'new')) && (
        <SkillDialog
          key={wanted}
          project={project}
          {...(edited && { skill: edited })}
          readOnly={!mayEdit || (edited !== undefined && edited.source !== 'project')}
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
            await call('skill.delete', { project, id: deleted.id })
            showDone(text.skillDeleted)
            reload()
          }}
          onClose={() => setDeleted(undefined)}
        >
          <p>{text.skillDelete}</p>
        </Confirm>
      )}
    </Page>
  )
}

function SkillDialog({
  project,
  skill,
  readOnly,
  onClose,
}: {
  readonly project: string
  readonly skill?: Skill
  readonly readOnly: boolean
  readonly onClose: (saved: boolean) => void
}) {
  const [name, setName] = useState(skill?.name ?? '')
  const [description, setDescription] = useState(skill?.description ?? '')
  const [instructions, setInstructions] = useState(skill?.instructions ?? '')
  const [tools, setTools] = useState(skill?.allowed_tools?.join('\n') ?? '')
  const { error, attempt, faultOf } = useRefusal()
  const replace = useSave(skill)
  const { isChanged } = useChanged([name, description, instructions, tools])
  const save = async (): Promise<void> => {
    const allowed_tools = tools.split(/\s+/).filter((tool) => tool !== '')
    const body = {
      project,
      name: name.trim(),
      instructions,
      ...(description.trim() !== '' && { description: description.trim() }),
      ...(allowed_tools.length > 0 && { allowed_tools }),
      ...(skill?.tags && { tags: skill.tags }),
    }
    await attempt(async () => {
      await (skill
        ? replace('skill.replace', { ...body, id: skill.id })
        : call('skill.create', body))
      onClose(true)
    })
  }
  if (readOnly && skill)
    return (
      <Dialog title={skill.name} onClose={() => onClose(false)} wide>
        <p class="soft">{text.system}</p>
        <Markdown text={skill.instructions} />
      </Dialog>
    )
  return (
    <Dialog title={skill ? text.skillEdit : text.newSkill} onClose={() => onClose(false)} wide>
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
        <div class="instructions">
          <strong>{text.instructions}</strong>
          <Editor
            label={text.instructions}
            language="text"
            value={instructions}
            rows={12}
            onValue={setInstructions}
            onSubmit={() => void save().catch(showError)}
          />
          {faultOf('instructions') && <p class="fault">{faultOf('instructions')}</p>}
        </div>
        <TextArea
          label={text.allowedTools}
          hint={text.allowedHint}
          value={tools}
          rows={3}
          fault={faultOf('allowed_tools')}
          onValue={setTools}
        />
        {error && <Failure error={error} />}
        <DialogActions
          onClose={() => onClose(false)}
          action={text.save}
          submit
          disabled={
            (skill !== undefined && !isChanged) || name.trim() === '' || instructions === ''
          }
          onClick={save}
        />
      </form>
    </Dialog>
  )
}
