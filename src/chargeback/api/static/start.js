// "Try it out" asks this service where the page was found, also below a path of a proxy's choice.
fetch("openapi.json")
  .then((answer) => answer.json())
  .then((document_) => {
    const here = new URL(".", window.location.href).href.replace(/\/$/, "");
    window.ui = SwaggerUIBundle({
      spec: { ...document_, servers: [{ url: here }] },
      dom_id: "#swagger-ui",
      deepLinking: true,
      // No validator: it would send the address of this service to another host.
      validatorUrl: null,
      presets: [SwaggerUIBundle.presets.apis],
    });
  });
