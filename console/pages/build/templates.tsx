/** The choice of a template. */

/** Shows templates as cards, one of which is selected. */
export const Templates = ({
  label,
  templates,
  chosen,
  onChosen,
}: {
  readonly label: string
  readonly templates: readonly {
    readonly id: string
    readonly label: string
    readonly hint: string
  }[]
  readonly chosen: string
  readonly onChosen: (id: string) => void
}) => (
  <fieldset class="templates">
    <legend>{label}</legend>
    {templates.map((one) => (
      <label key={one.id} class="template">
        <input
          type="radio"
          name="template"
          value={one.id}
          checked={one.id === chosen}
          onChange={() => onChosen(one.id)}
        />
        <span>
          {one.label}
          <span class="small soft">
            <br />
            {one.hint}
          </span>
        </span>
      </label>
    ))}
  </fieldset>
)
