# The app in a container; docs/deploy.md says how to build and run it, and that no one has yet built this image.
ARG PYTHON=3.12
FROM python:${PYTHON}-slim

# PyTorch's wheels for the CPU: those of the package index bring several gigabytes of CUDA libraries. For a GPU choose the index
# that PyTorch's installation page names for your CUDA version.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu

# The volume is the home folder too, so that downloaded models and compiled code are kept, whichever user runs the container.
RUN useradd --uid 1000 --home-dir /data isoviz && install --directory --owner=isoviz --mode=0700 /data

WORKDIR /opt/isoviz
COPY requirements.txt requirements-dev.txt ./
# PostgreSQL and login are extras of the package, with pins among those of the tests.
RUN pip install --no-cache-dir --index-url "$TORCH_INDEX" "$(grep '^torch==' requirements.txt)" \
 && grep -E '^(psycopg|Authlib|httpx)' requirements-dev.txt > requirements-extras.txt \
 && pip install --no-cache-dir -r requirements.txt -r requirements-extras.txt
COPY . .
RUN pip install --no-cache-dir --no-deps --editable . \
 && python -m compileall -q isoviz dashboard pages

ENV HOME=/data \
    ISOVIZ_HOME=/data \
    ISOVIZ_URL=http://localhost:8501 \
    ISOVIZ_RELEASE_RUNS=1 \
    PYTHONUNBUFFERED=1
USER 1000
VOLUME /data
EXPOSE 8501
HEALTHCHECK --start-period=60s --interval=30s --timeout=10s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8501/isoviz/health', timeout=9)"]
ENTRYPOINT ["isoviz"]
CMD ["app", "--headless", "--host", "0.0.0.0"]
